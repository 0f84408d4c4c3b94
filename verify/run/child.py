"""Levels run in child processes with caps on time and memory, without a network, ended as a group, watched for their
peak memory, with everything they say in a log. Linux; standard library only.

Two kinds: `run`, a program that ends by itself (a TensorRT build), and `Server`, one that answers JSON lines on its
standard output to lines on its standard input, so that several can be timed in turn.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
PR_SET_PDEATHSIG = 1
POLL_SECONDS = 0.05
MAX_LINE = 1 << 20


@dataclass(frozen=True)
class Caps:
    """Bounds of one child."""

    seconds: float = 600.0
    memory_bytes: int = 0  # resident, of the whole group; 0: none but the floor
    floor_bytes: int = 256 << 20  # the machine keeps this much available, or the child ends
    network: bool = False  # True: leave it the network


@dataclass
class Ended:
    """How a child came to its end. `cause`: exited, signal, timeout, memory (its cap), floor (the machine's),
    no-program, closed (by us)."""

    cause: str
    code: int = 0
    seconds: float = 0.0
    text: str = ""
    memory: dict = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.cause == "exited" and self.code == 0


def mem_available() -> int:
    """Bytes that the machine could give out now; 0 where it does not tell."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            return next((int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable:")), 0)
    except OSError:
        return 0


def group_of(leader: int) -> list[int]:
    """The process and all below it."""
    found, queue = [], [leader]
    while queue:
        pid = queue.pop()
        found.append(pid)
        try:
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
                    queue += [int(word) for word in file.read().split()]
        except OSError:
            pass  # it has ended meanwhile
    return found


def resident(pids: list[int]) -> int:
    """Resident bytes of the processes together; pages they share count once each."""
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/statm", encoding="ascii") as file:
                total += int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
        except (OSError, IndexError, ValueError):
            pass
    return total


def _cut_network(libc) -> bool:
    """In the child: a network namespace of its own, with nothing in it. Root needs no user namespace for it."""
    if libc.unshare(CLONE_NEWNET) == 0:
        return True
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0:
        return False
    for name, value in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        try:
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(value)
        except OSError:
            pass
    return True


def network_can_be_cut() -> bool:
    """Whether children of this process can be kept from the network here."""
    pid = os.fork()
    if pid == 0:
        os._exit(0 if _cut_network(ctypes.CDLL(None)) else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def _prepare(caps: Caps):
    libc = ctypes.CDLL(None, use_errno=True)

    def prepare() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        try:
            with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
                file.write("900")  # where memory runs out, this goes before the runner and the daemon
        except OSError:
            pass
        if not caps.network:
            _cut_network(libc)

    return prepare


class Child:
    """One started child; `watch` is called often enough to see its peak and to enforce its caps."""

    def __init__(self, argv: list[str], caps: Caps, log: Path, env: dict[str, str] | None = None, pipes: bool = False):
        self.caps, self.log, self.began = caps, log, time.monotonic()
        self.since = self.began  # the cap on time counts from here
        self.available_before = self.available_least = mem_available()
        self.peak = 0
        self.ended: Ended | None = None
        self.process = None
        pipe = subprocess.PIPE if pipes else None
        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log, "ab") as sink:
            sink.write(f"$ {' '.join(argv)}\n".encode())
            sink.flush()
            try:
                self.process = subprocess.Popen(
                    argv, stdin=pipe or subprocess.DEVNULL, stdout=pipe or sink, stderr=sink, start_new_session=True,
                    env={**os.environ, **(env or {})}, preexec_fn=_prepare(caps),
                )  # fmt: skip
            except OSError as error:
                self.ended = Ended("no-program", 127, 0.0, f"{argv[0]}: {error.strerror}")

    def watch(self) -> Ended | None:
        """Looks at the child once: None while it runs within its caps."""
        if self.ended is not None:
            return self.ended
        here = resident(group_of(self.process.pid))
        self.peak = max(self.peak, here)
        available = mem_available()
        self.available_least = min(self.available_least, available)
        if time.monotonic() - self.since > self.caps.seconds:
            return self.end("timeout", f"not done within {self.caps.seconds:g} s")
        if self.caps.memory_bytes and here > self.caps.memory_bytes:
            return self.end("memory", f"{here >> 20} MiB resident, the cap is {self.caps.memory_bytes >> 20} MiB")
        if available and available < self.caps.floor_bytes:
            return self.end("floor", f"{available >> 20} MiB left on the machine, the floor is {self.caps.floor_bytes >> 20} MiB")
        return self._reap(os.WNOHANG)

    def end(self, cause: str, text: str) -> Ended:
        """Ends the whole group."""
        if self.ended is None:
            self._kill()
            self._reap(0, cause, text)
        return self.ended

    def _kill(self) -> None:
        for pid in reversed(group_of(self.process.pid)):  # also what has left the group
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except OSError:
            pass

    def _reap(self, flags: int, cause: str = "", text: str = "") -> Ended | None:
        pid, status, usage = os.wait4(self.process.pid, flags)
        if pid == 0:
            return None
        try:
            os.killpg(self.process.pid, signal.SIGKILL)  # nobody of the group outlives its leader
        except OSError:
            pass
        code = os.waitstatus_to_exitcode(status)
        self.process.returncode = code
        self.peak = max(self.peak, usage.ru_maxrss * 1024)
        if not cause:
            cause = "exited" if code >= 0 else "signal"
            if code < 0:
                text = f"ended by {signal.Signals(-code).name}"
        self.ended = Ended(cause, code, time.monotonic() - self.began, text, self.memory())
        return self.ended

    def memory(self) -> dict:
        """What was seen so far. `peak_resident_bytes`: of the group, at least the largest process' own peak;
        `peak_system_bytes`: by how much the machine's available memory fell, which on a Jetson holds what the GPU took
        (and whatever else ran meanwhile)."""
        fell = max(0, self.available_before - self.available_least)
        return {"peak_resident_bytes": self.peak, "peak_system_bytes": fell}


def run(argv: list[str], caps: Caps, log: Path, env: dict[str, str] | None = None, tick=None) -> Ended:
    """Runs a program to its end. `tick(seconds)` is called now and then."""
    child = Child(argv, caps, log, env)
    try:
        while (ended := child.watch()) is None:
            time.sleep(POLL_SECONDS)
            if tick:
                tick(time.monotonic() - child.began)
        return ended
    finally:
        child.end("closed", "")  # nothing is left behind where the runner is interrupted


class Gone(Exception):
    """A server ended, or answered what is no answer; `ended` tells how."""

    def __init__(self, ended: Ended):
        super().__init__(ended.text or f"exit code {ended.code}")
        self.ended = ended


class Server:
    """A child that answers one JSON object a line. `facts` is its first answer's "ready"; a first answer "skipped" or
    "failed" leaves `refusal` set, and the child ended."""

    def __init__(self, argv: list[str], caps: Caps, log: Path, env: dict[str, str] | None = None):
        self.child = Child(argv, caps, log, env, pipes=True)
        self.buffer = b""
        self.refusal: dict | None = None
        if self.child.ended:
            raise Gone(self.child.ended)
        try:
            first = self._answer()
        except BaseException:
            self.child.end("closed", "")
            raise
        self.facts = first.get("ready", {})
        if "ready" not in first:
            self.refusal = first
            self.close()

    def ask(self, line: str, quiet: bool = False) -> dict:
        """The answer to one line, within the cap on time. `quiet`: look seldom, so as not to disturb what is timed. Raises
        Gone."""
        self.child.since = time.monotonic()
        try:
            self.child.process.stdin.write(line.encode() + b"\n")
            self.child.process.stdin.flush()
        except OSError:
            pass  # the reason is found below
        return self._answer(1.0 if quiet else POLL_SECONDS)

    def _answer(self, poll: float = POLL_SECONDS) -> dict:
        out = self.child.process.stdout
        while b"\n" not in self.buffer:
            if select.select([out], [], [], poll)[0]:
                got = os.read(out.fileno(), 1 << 16)
                self.buffer += got
                if len(self.buffer) > MAX_LINE:
                    raise Gone(self.child.end("exited", f"an answer of over {MAX_LINE} bytes"))
                if not got:
                    while (ended := self.child.watch()) is None:
                        time.sleep(POLL_SECONDS)
                    raise Gone(ended)
            elif (ended := self.child.watch()) is not None and b"\n" not in self.buffer:
                raise Gone(ended)
        line, self.buffer = self.buffer.split(b"\n", 1)
        self.child.watch()
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise Gone(self.child.end("exited", f"no answer: {line[:200].decode(errors='replace')!r}"))
        return answer

    def close(self) -> Ended:
        """Asks the child to end, and sees to it."""
        if self.child.ended is None:
            try:
                self.child.process.stdin.close()
            except OSError:
                pass
            limit = time.monotonic() + 5
            while self.child.watch() is None and time.monotonic() < limit:
                time.sleep(POLL_SECONDS)
            self.child.end("closed", "")
        for pipe in (self.child.process.stdin, self.child.process.stdout):
            try:
                pipe.close()
            except OSError:
                pass  # what was not read by the child
        return self.child.ended
