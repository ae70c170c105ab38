"""The columns of the view `latency` that only an open loop fills."""

from __future__ import annotations

from runner.store.columns import Field, count, number

ARRIVAL = [
    Field(
        "arrival",
        "coalesce(json_extract(run.conditions, '$.arrival'), 'closed')",
        "closed loop, or constant or poisson (open loop); never to be compared with one another",
    ),
    Field(
        "rate_per_s",
        "json_extract(run.conditions, '$.rate_per_s')",
        "calls per second asked for; NULL in a closed loop",
        postgresql="CAST(run.conditions ->> 'rate_per_s' AS double precision)",
    ),
]

OPEN_LOOP = [
    number("response_p50_us", "µs, median response time: from when a call was due; NULL in a closed loop"),
    number("response_p90_us", "µs, its 90th percentile"),
    number("response_p99_us", "µs, its 99th percentile; NULL below 100 samples"),
    number("response_p999_us", "µs, its 99.9th percentile; NULL below 1,000 samples"),
    number("response_mean_us", "µs, its arithmetic mean"),
    number("response_max_us", "µs, the longest"),
    number("requested_per_s", "calls due per second, from the first to the last"),
    number("sent_per_s", "calls started per second, from the first to the last"),
    number("achieved_per_s", "right answers per second, from the first to the last"),
    count("dropped", "calls not made, as load.max_in_flight others were waiting or under way"),
    number("schedule_delay_p50_us", "µs by which the driver was late with a call, median"),
    number("schedule_delay_p99_us", "µs, its 99th percentile; NULL below 100 calls"),
]
