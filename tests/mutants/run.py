"""Applies every mutant of the list to a copy of the tree and runs the tests that must fail.

    python -m tests.mutants.run [--only NAME …] [--workers 2]

The checkout is never touched: `src` and `tests` are copied into a temporary directory, one for each
worker, and the rest is linked. The named tests must first pass on the code as it is (a skipped test
catches nothing). A mutant is caught if a test fails; one that breaks an import, or that runs into
the time limit, is not. The exit status is 0 only if all are caught.
"""

import argparse
import compileall
import json
import os
import py_compile
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from pathlib import Path
from queue import Queue

from tests.mutants.listing import ROOT, Mutant, mutants

COPIED = ("src", "tests")
PATIENCE = 300  # seconds a mutant's tests may take
BASELINE = 1800  # seconds all named tests may take on the code as it is
# Without the shape checks of the usual run: a test has to see the fault, and it starts sooner.
PYTEST = ("-x", "-q", "-p", "no:cacheprovider", "-o", "addopts=--strict-markers --strict-config")
FAILED = 1  # pytest: some test failed


class Tree:
    """A throw-away copy of the repository."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.zygote: subprocess.Popen[str] | None = None
        root.mkdir()
        for path in ROOT.iterdir():
            if path.name in COPIED:
                shutil.copytree(
                    path, root / path.name, ignore=shutil.ignore_patterns("__pycache__")
                )
            elif not path.name.startswith(".") and path.name != "runs":
                (root / path.name).symlink_to(path)
        # Bytecode that belongs to its source by hash: an edited file is compiled anew.
        checked = py_compile.PycInvalidationMode.CHECKED_HASH
        compileall.compile_dir(root / "src", quiet=2, invalidation_mode=checked)

    def pytest(self, tests: list[str], timeout: float, *more: str) -> tuple[int | None, str]:
        """Exit status (None: time is up) and output of a run of these tests here."""
        if self.zygote is None:
            self.zygote = self._started()
        assert self.zygote.stdin is not None and self.zygote.stdout is not None
        request = {"words": [*PYTEST, *more, *tests], "timeout": timeout}
        self.zygote.stdin.write(json.dumps(request) + "\n")
        self.zygote.stdin.flush()
        answer = json.loads(self.zygote.stdout.readline())
        return answer["status"], answer["output"]

    def _started(self) -> "subprocess.Popen[str]":
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join((str(self.root / "src"), str(self.root))),
            "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "XDG_CACHE_HOME": str(self.root / ".cache"),
        }
        words = [sys.executable, "-P", str(self.root / "tests" / "mutants" / "zygote.py")]
        pipes: dict = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        return subprocess.Popen(words, cwd=self.root, env=environment, **pipes)

    def close(self) -> None:
        """Ends its process."""
        if self.zygote is not None:
            assert self.zygote.stdin is not None and self.zygote.stdout is not None
            self.zygote.stdin.close()
            self.zygote.wait()
            self.zygote.stdout.close()

    def meets(self, mutant: Mutant) -> tuple[bool, str]:
        """Whether its tests catch a mutant, and what happened."""
        path = self.root / mutant.path
        original = path.read_text(encoding="utf-8")
        try:
            path.write_text(mutant.source(self.root), encoding="utf-8")
            status, output = self.pytest(list(mutant.tests), PATIENCE)
        finally:
            path.write_text(original, encoding="utf-8")
        if status == FAILED:
            return True, _failed(output)
        why = {None: "time is up", 0: "all tests pass"}.get(status, "the tests cannot run")
        return False, f"{why}: {', '.join(mutant.tests)}" + ("" if not status else f"\n{output}")


def _failed(output: str) -> str:
    lines = [line for line in output.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return lines[0].split(" - ")[0].split(" ", 1)[1] if lines else ""


def not_passing(tree: Tree, some: list[Mutant]) -> str:
    """What is wrong with the named tests on the code as it is; empty if all pass."""
    tests = list(dict.fromkeys(test for mutant in some for test in mutant.tests))
    print(f"{len(tests)} tests on the code as it is …", flush=True)
    report = tree.root / "report.xml"
    status, output = tree.pytest(tests, BASELINE, "-rs", f"--junitxml={report}")
    if status != 0:
        return output or "Time is up."
    suite = next(ET.parse(report).getroot().iter("testsuite"))
    return "" if suite.get("skipped") == "0" else f"Some were skipped:\n{output}"


def run(some: list[Mutant], workers: int) -> int:
    """Meets all of them; how many were not caught."""
    began, caught = time.perf_counter(), 0
    with (
        tempfile.TemporaryDirectory(prefix="maskwalk-mutants-") as folder,
        ExitStack() as closing,
    ):
        trees: Queue[Tree] = Queue()
        for number in range(min(workers, len(some))):
            tree = Tree(Path(folder) / str(number))
            closing.callback(tree.close)
            trees.put(tree)

        def meet(mutant: Mutant) -> tuple[bool, str, float]:
            tree, start = trees.get(), time.perf_counter()
            try:
                return *tree.meets(mutant), time.perf_counter() - start
            finally:
                trees.put(tree)

        first = trees.get()
        wrong = not_passing(first, some)
        trees.put(first)
        if wrong:
            sys.exit(f"The tests must pass before anything is changed.\n{wrong}")
        with ThreadPoolExecutor(workers) as pool:
            jobs = {pool.submit(meet, mutant): mutant for mutant in some}
            for done, job in enumerate(as_completed(jobs), 1):
                right, what, seconds = job.result()
                caught += right
                word = "caught" if right else "MISSED"
                line = (
                    f"[{done:3}/{len(some)}] {word} {jobs[job].name:<44} {seconds:5.1f} s  {what}"
                )
                print(line, flush=True)
    minutes = (time.perf_counter() - began) / 60
    share = 100 * caught / len(some)
    print(f"{caught} of {len(some)} mutants caught ({share:.1f} %) in {minutes:.1f} minutes.")
    return len(some) - caught


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", action="append", metavar="NAME", help="a name, or how it begins")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    some = [m for m in mutants() if not given.only or m.name.startswith(tuple(given.only))]
    if not some:
        sys.exit("There is no mutant of that name.")
    for mutant in some:
        if problem := mutant.problem():
            sys.exit(f"{mutant.name}: {problem}. Mend its entry in tests/mutants/semantic.")
    sys.exit(run(some, max(1, given.workers)) and 1)


if __name__ == "__main__":
    main()
