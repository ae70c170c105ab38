"""What lies between the two processes: socket buffers, the accept queue, open files, proxies."""

from __future__ import annotations

import resource

from runner import machine
from runner.doctor.finding import Finding, Sight, fit, judged, not_told

CONNECTIONS = 300
OTHER_FILES = 50  # libraries, pipes, the loop's own
_BUFFERS = {"tcp_rmem": "4096 131072", "tcp_wmem": "4096 16384"}  # least and default, as Linux ships
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "grpc_proxy")


def findings(sight: Sight, open_files: int | None = None) -> list[Finding]:
    """`open_files`: the limit of this process unless given."""
    if open_files is None:
        open_files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return [*(_buffers(sight, name) for name in _BUFFERS), _backlog(sight), _files(open_files), _proxies(sight)]


def _buffers(sight: Sight, name: str) -> Finding:
    found = machine.sysctl(f"net/ipv4/{name}", sight.root)
    if found is None:
        return not_told(name)
    usual = _BUFFERS[name]
    most = found.split()[-1]
    wanted = f"{usual} ...: it bounds what backpressure finds, and other machines have the usual one"
    remedy = f'sudo sysctl -w net.ipv4.{name}="{usual} {most}"'
    return judged(name, found, found.startswith(f"{usual} "), "note", wanted, remedy)


def _backlog(sight: Sight) -> Finding:
    found = machine.sysctl("net/core/somaxconn", sight.root)
    if not found:
        return not_told("somaxconn")
    remedy = "sudo sysctl -w net.core.somaxconn=4096"
    wanted = f"{CONNECTIONS} or more, for as many connections at once"
    return judged("somaxconn", found, int(found) >= CONNECTIONS, "note", wanted, remedy)


def _files(limit: int) -> Finding:
    needed = CONNECTIONS + OTHER_FILES
    unlimited = limit == resource.RLIM_INFINITY
    wanted = f"{needed} or more, for {CONNECTIONS} connections"
    found = "no limit" if unlimited else f"{limit} at most"
    return judged("open files", found, unlimited or limit >= needed, "note", wanted, "ulimit -n 4096")


def _proxies(sight: Sight) -> Finding:
    found = sorted(name for name in sight.environ if name.lower() in _PROXIES and sight.environ[name])
    return fit("proxies", f"{', '.join(found)}: ignored, every protocol connects directly" if found else "none set")
