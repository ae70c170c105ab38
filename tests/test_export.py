"""`bakeoff export RUN`: what is written is what was measured, and nothing is written over."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Any

import pytest
from hdrh.log import HistogramLogReader

from runner.history import export
from tests.golden_db import latency_run
from tests.words import Bakeoff

RUN = "01KG0000000000000000010000"
SAMPLED = replace(
    latency_run("grpc", 0, 300),
    samples={"latency": [1000, 2000, 3000, 4000], "response": [5000, 6000]},
    config={"record": {"samples_max": 2}},
)


@pytest.fixture
def bakeoff(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Bakeoff:
    found = Bakeoff(capsys, monkeypatch, tmp_path)
    found.write([SAMPLED, latency_run("tcp", 0, verdict="failed", reason="no answer")])
    return found


def test_samples_go_to_csv_with_their_true_positions(bakeoff: Bakeoff) -> None:
    assert bakeoff("export", RUN, "--samples", "s.csv") == "s.csv: 4 of 6 samples\n"

    assert (bakeoff.folder / "s.csv").read_bytes().decode() == (
        "run_id,name,seq,value_ns\n"
        f"{RUN},latency,0,1000\n"
        f"{RUN},latency,2,3000\n"
        f"{RUN},response,0,5000\n"
        f"{RUN},response,1,6000\n"
    )


def test_the_histogram_log_is_read_by_hdrhistograms_own_reader(bakeoff: Bakeoff) -> None:
    assert bakeoff("export", RUN, "--hdr", "s.hlog") == "s.hlog: 2 histograms of 6 samples\n"

    from hdrh.histogram import HdrHistogram

    reader = HistogramLogReader(str(bakeoff.folder / "s.hlog"), HdrHistogram(1, 3_600_000_000_000, 3))
    found = []
    while (histogram := reader.get_next_interval_histogram()) is not None:
        found.append((histogram.get_tag(), histogram.get_total_count(), histogram.get_max_value()))
    reader.close()
    assert [(tag, n) for tag, n, _ in found] == [("latency", 4), ("response", 2)]
    assert [abs(most - true) / true < 0.002 for (_, _, most), true in zip(found, (4000, 6000), strict=True)] == [
        True,
        True,
    ]


def test_a_file_that_is_there_is_written_over_only_when_told_so(bakeoff: Bakeoff) -> None:
    (bakeoff.folder / "s.csv").write_text("mine")

    assert bakeoff.refused("export", RUN, "--samples", "s.csv", "--hdr", "s.hlog") == (
        "s.csv is there already; give another name, or --force to write over it"
    )
    assert [(bakeoff.folder / "s.csv").read_text(), (bakeoff.folder / "s.hlog").exists()] == ["mine", False]
    bakeoff("export", RUN, "--samples", "s.csv", "--force")
    assert (bakeoff.folder / "s.csv").read_text().startswith("run_id,name,seq,value_ns\n")


def test_without_pyarrow_parquet_is_one_line(bakeoff: Bakeoff, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(export.importlib, "import_module", missing)
    with pytest.raises(export.Mistake) as told:
        export.parquet([], "s.parquet")

    assert str(told.value) == "s.parquet: Parquet needs pyarrow; pip install pyarrow, or give a .csv"


def test_samples_go_to_parquet_where_pyarrow_is(bakeoff: Bakeoff) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    bakeoff("export", RUN, "--samples", "s.parquet")

    table = importlib.import_module("pyarrow.parquet").read_table(bakeoff.folder / "s.parquet")
    assert table.column_names == ["run_id", "name", "seq", "value_ns"]
    assert table["value_ns"].to_pylist() == [1000, 3000, 5000, 6000]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([RUN], "nothing to write; give --samples FILE or --hdr FILE"),
        (
            [RUN, "--samples", "s.txt"],
            "--samples s.txt: neither .csv nor .parquet; give the file one of these endings",
        ),
        (
            [RUN, "--samples", "no/s.csv"],
            "no/s.csv: cannot be written (No such file or directory); give another file",
        ),
        (
            ["01KG0000000000000000010001", "--hdr", "s.hlog"],
            "run 01KG0000000000000000010001 has no samples; it ended failed: no answer",
        ),
    ],
)
def test_mistakes_name_the_way_out_and_write_nothing(bakeoff: Bakeoff, argv: list[str], said: str) -> None:
    assert bakeoff.refused("export", *argv) == said
    assert [path.name for path in bakeoff.folder.iterdir()] == ["results.db"]
