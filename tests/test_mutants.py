"""The contract is worth something only if it catches the bugs it was written for."""

import pytest

from maskwalk.analysis.contract import Stand, failures
from maskwalk.worlds.walks.oracles import oracle_for
from tests.conftest import FLAT, STANDS
from tests.mutants import samplers as mutants

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
