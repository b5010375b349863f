"""A process that has imported everything and forks: a command starts in milliseconds.

It reads requests as JSON on stdin, one a line, and answers on stdout. A request names a command and
a directory, after how many seconds to kill it (-9, with all it started), a limit on the size of
files (a full disk), and whether root has to obey the modes of files.
"""

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.faults.commands import COMMANDS, ROOT

CAPABILITIES = 0x20080522  # the version of the system call's structures


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int  # -9: killed
    seconds: float
    said: str  # on stderr


@dataclass(frozen=True)
class Request:
    """What to run, and what is to befall it."""

    command: str
    out: str
    kill: float | None = None
    largest: int | None = None  # bytes a file may have
    obedient: bool = False  # the modes of files count, for root too
    fresh: bool = False  # a new interpreter instead of a fork


class Server:
    """The other side of the pipe."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=environment(),
        )

    def __call__(self, command: str, out: Path, **more: Any) -> Ended:
        """Runs a command and says how it ended."""
        assert self.process.stdin is not None and self.process.stdout is not None
        request = Request(command, str(out), **more)
        self.process.stdin.write(json.dumps(asdict(request)) + "\n")
        self.process.stdin.flush()
        return Ended(**json.loads(self.process.stdout.readline()))

    def close(self) -> None:
        """Ends the process."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def environment() -> dict[str, str]:
    """One thread, this checkout's source, no colours."""
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    single = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {**os.environ, **single, "PYTHONPATH": paths, "NO_COLOR": "1", "COLUMNS": "200"}


def run(request: Request, said: Path) -> Ended:
    """Starts a command, waits for its end or kills it."""
    began = time.monotonic()
    pid = _start(request, said)
    deadline = None if request.kill is None else began + request.kill
    status = _wait(pid, deadline)
    if status is None:
        _kill(pid)
        status = os.waitpid(pid, 0)[1]
    seconds = time.monotonic() - began
    return Ended(os.waitstatus_to_exitcode(status), seconds, said.read_text(errors="replace"))


def _kill(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:  # not yet the leader of its group
        os.kill(pid, signal.SIGKILL)


def _wait(pid: int, deadline: float | None) -> int | None:
    """The status of a child that ends before the deadline."""
    while deadline is not None:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        if time.monotonic() >= deadline:
            return None
        time.sleep(min(0.002, max(0.0, deadline - time.monotonic())))
    return os.waitpid(pid, 0)[1]


def _start(request: Request, said: Path) -> int:
    if request.fresh:
        words = [sys.executable, "-m", "tests.faults.commands", request.command, request.out]
        with said.open("wb") as file:
            return subprocess.Popen(
                words, stdout=subprocess.DEVNULL, stderr=file, cwd=ROOT, start_new_session=True
            ).pid
    pid = os.fork()
    if pid:
        return pid
    _child(request, said)
    raise AssertionError("not reached")


def _child(request: Request, said: Path) -> None:
    """The fork: becomes a command with its own session and output."""
    code = 1
    try:
        os.setsid()
        with said.open("wb") as file:
            os.dup2(file.fileno(), 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        if request.largest is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (request.largest, request.largest))
        if request.obedient and os.geteuid() == 0:
            _obey_modes()
        COMMANDS[request.command](Path(request.out))
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _obey_modes() -> None:
    """Root without its right to write where the mode says no (Linux)."""
    header = (ctypes.c_uint32 * 2)(CAPABILITIES, 0)
    nothing = (ctypes.c_uint32 * 6)()
    if ctypes.CDLL(None, use_errno=True).capset(header, nothing) != 0:
        raise OSError(ctypes.get_errno(), "capset")


def main() -> None:
    """Imports what commands need, then forks at every request."""
    import tempfile

    import torch

    import maskwalk.analysis.losses
    import maskwalk.bench.experiment
    import maskwalk.bench.verdict.run
    import maskwalk.cli.main
    import maskwalk.paper.compare
    import maskwalk.report.page
    import maskwalk.training.fit  # noqa: F401

    torch.set_num_threads(1)
    answers, sys.stdout = sys.stdout, sys.stderr
    with tempfile.TemporaryDirectory() as folder:
        for line in sys.stdin:
            ended = run(Request(**json.loads(line)), Path(folder) / "stderr")
            print(json.dumps(asdict(ended)), file=answers, flush=True)


if __name__ == "__main__":
    main()
