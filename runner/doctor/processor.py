"""Which CPUs there are, how many of them are ours, and what may change their speed."""

from __future__ import annotations

from runner import machine
from runner.doctor.finding import Finding, Sight, fit, judged, not_told

SIDES = 2  # server and driver, one CPU each


def findings(sight: Sight) -> list[Finding]:
    """CPU model, CPUs and cores, quota, SMT, governor, turbo."""
    return [_model(sight), _cpus(sight), _cores(sight), _quota(sight), _smt(sight), _governor(sight), _turbo(sight)]


def _model(sight: Sight) -> Finding:
    for line in (machine.read(sight.root, "proc/cpuinfo") or "").splitlines():
        if line.startswith("model name"):
            return fit("CPU", line.partition(":")[2].strip())
    return not_told("CPU")


def _cpus(sight: Sight) -> Finding:
    there = (machine.read(sight.root, "proc/stat") or "").count("\ncpu")
    n = len(sight.cpus)
    found = f"{n} of {there}" if there >= n else str(n)
    remedy = "a larger machine or container, or start bakeoff without taskset; load.placement=same needs only one"
    return judged("CPUs we may use", found, n >= SIDES, "unfit", f"{SIDES}, one for each side", remedy)


def _cores(sight: Sight) -> Finding:
    n = len(sight.cores)
    few = len(sight.cpus) >= SIDES > n
    remedy = "load.placement=same, or a machine with a core for each side: these CPUs share one"
    return judged("cores we may use", n, not few, "note", f"{SIDES}", remedy)


def _quota(sight: Sight) -> Finding:
    quota = machine.cpu_quota_pct(sight.root)
    if not quota.told:
        return not_told("CPU quota")
    if quota.value is None:
        return fit("CPU quota", "none")
    wanted = f"none, or {SIDES} CPUs: at the quota every process stands still until the next period"
    remedy = f"raise the container's CPU limit (docker run --cpus={SIDES})"
    return judged("CPU quota", f"{quota.value / 100:g} CPUs", quota.value >= 100 * SIDES, "unfit", wanted, remedy)


def _smt(sight: Sight) -> Finding:
    found = machine.smt(sight.root)
    if found is None:
        return not_told("SMT")
    remedy = "echo off | sudo tee /sys/devices/system/cpu/smt/control"
    wanted = "off: a busy sibling slows a CPU, and bakeoff uses only one of each core"
    return judged("SMT", found, found == "off", "note", wanted, remedy)


def _governor(sight: Sight) -> Finding:
    found = machine.governor(sight.root)
    if found is None:
        return not_told("governor")
    remedy = "sudo cpupower frequency-set -g performance"
    return judged("governor", found, found == "performance", "note", "performance", remedy)


def _turbo(sight: Sight) -> Finding:
    found = machine.turbo(sight.root)
    if found is None:
        return not_told("turbo")
    intel = machine.read(sight.root, "sys/devices/system/cpu/intel_pstate/no_turbo") is not None
    file, value = ("intel_pstate/no_turbo", 1) if intel else ("cpufreq/boost", 0)
    remedy = f"echo {value} | sudo tee /sys/devices/system/cpu/{file}"
    return judged("turbo", found, found == "off", "note", "off: the speed depends on how hot it is", remedy)
