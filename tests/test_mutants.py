"""The contract catches the bugs it was written for; and the list of mutants that tests must catch.

`make mutants` applies the semantic ones (tests/mutants/semantic) and runs their tests; here it is
only checked that it can.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from maskwalk.analysis.contract import Stand, failures
from maskwalk.samplers import SAMPLERS
from maskwalk.worlds.walks.oracles import oracle_for
from tests.conftest import FLAT, STANDS
from tests.mutants import samplers as mutants
from tests.mutants.listing import ROOT
from tests.mutants.listing import mutants as semantic

CAUGHT_BY = {
    mutants.EntropyBackwards: "ranks_as_stated",
    mutants.CumulativeOverBatch: "batch_free",
    mutants.CountsAveragedOverBatch: "batch_free",
    mutants.ScoresChangeWithBatch: "batch_free",
    mutants.CrashesAboveBatchOne: "terminates",
    mutants.NoiseInConfidence: "ranks_as_stated",
    mutants.GlobalGenerator: "deterministic",
    mutants.NeverRemasks: "remasks_as_stated",
    mutants.IndexTies: "ties_are_fair",
    mutants.OverwritesGiven: "terminates",
    mutants.ChoosesNothing: "terminates",
    mutants.DrawsFirst: "law_is_as_enumerated",
    mutants.PlansInRoundZero: "fits_in_wrappers",
    mutants.MeasuresTheCanvas: "fits_in_wrappers",
}


@pytest.mark.parametrize("mutant", CAUGHT_BY, ids=lambda m: m.__name__)
def test_contract_catches(mutant: type) -> None:
    law = STANDS["chain"]
    stand = Stand(oracle_for(law), oracle_for(FLAT), law.length)
    found = dict(failures(mutant(), stand))
    assert CAUGHT_BY[mutant] in found, found


def test_every_mutant_is_listed() -> None:
    named = {v for v in vars(mutants).values() if getattr(v, "__module__", "") == mutants.__name__}
    assert named == set(CAUGHT_BY)


# ------------------------------------------------------------------------------- the semantic ones


def test_there_are_enough_semantic_mutants_and_none_twice() -> None:
    every = semantic()
    assert len(every) >= 120
    assert len({one.name for one in every}) == len(every)
    assert len({(one.file, one.old, one.new) for one in every}) == len(every)
    # Every part of the package has some, and so has every sampler.
    places = {Path(one.file).parts[0] for one in every}
    assert places >= {"streams.py", "specs", "stats.py", "worlds", "denoisers", "decoding"}
    assert places >= {"samplers", "analysis", "training", "bench", "report", "paper", "cli"}


def test_every_semantic_mutant_can_be_applied() -> None:
    for one in semantic():
        assert not one.problem(), f"{one.name}: {one.problem()}"
        assert one.old != one.new and one.tests, one.name
        compile(one.source(), one.file, "exec")


def test_every_sampler_has_a_semantic_mutant() -> None:
    """Those of the parts count for the rules that are hardly more than their parts."""
    files = {one.file for one in semantic()}
    parts = {"low_confidence": "counts", "random": "counts"}
    for name in SAMPLERS:
        file = f"parts/{parts[name]}.py" if name in parts else f"{name}.py"
        assert f"samplers/{file}" in files, name


def test_the_tests_of_the_semantic_mutants_are_there() -> None:
    """Collected by pytest itself, in a process of its own: an unknown id is an error."""
    ids = sorted({test for one in semantic() for test in one.tests})
    words = ["-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-o", "addopts="]
    found = subprocess.run(
        [sys.executable, *words, *ids], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout[-2000:] + found.stderr[-2000:]
