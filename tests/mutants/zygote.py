"""A process that has imported what most tests need, and forks: pytest starts in milliseconds.

It reads a request as JSON on stdin, one per line (pytest's words and a time limit), and answers on
stdout with the exit status (null: time is up) and the output. It never imports what is tested, nor
plug-ins of pytest: each fork reads maskwalk and the tests anew, as they are on disk at that moment.
"""

import importlib
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

PRELOADED = (
    "numpy", "scipy.optimize", "scipy.sparse.csgraph", "scipy.stats", "networkx", "torch",
    "safetensors.torch", "typer", "rich.progress", "jinja2", "pyarrow", "pytest",
)  # fmt: skip


def serve() -> None:
    """Answers until the other side is gone."""
    for name in PRELOADED:
        importlib.import_module(name)
    foreign = sys.stdout
    with tempfile.TemporaryDirectory(prefix="maskwalk-zygote-") as folder:
        for line in sys.stdin:
            request = json.loads(line)
            output = Path(folder) / "output"
            status = run(request["words"], request["timeout"], output)
            answer = {"status": status, "output": output.read_text(errors="replace")}
            foreign.write(json.dumps(answer) + "\n")
            foreign.flush()


def run(words: list[str], timeout: float, output: Path) -> int | None:
    """pytest in a fork; its exit status, or None where it was killed at the time limit."""
    pid = os.fork()
    if not pid:
        _become(words, output)
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def _become(words: list[str], output: Path) -> Any:
    """In the fork: a process group of its own, its output in a file, then pytest to the end."""
    status = 70
    try:
        os.setsid()
        file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for here, there in ((nothing, 0), (file, 1), (file, 2)):
            os.dup2(here, there)
        import pytest

        status = int(pytest.main(words))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    serve()
