"""The audit names every bug of tests/mutants/foreign.py by its check, and passes the right ones.

Each statistical check fails a right decoder with probability 1e-6; the seeds are fixed, so one that
passes here passes always. The right ones pass every check there is, which no check that cries wolf
would let them.
"""

import pytest

from maskwalk import audit
from maskwalk.testing.audit import CHECKS
from tests.mutants import foreign


@pytest.mark.parametrize("name", foreign.RIGHT)
def test_a_right_decoder_passes(name: str) -> None:
    decoder, how = foreign.RIGHT[name]
    found = audit(decoder, **how)
    assert found.passed, found
    assert how.get("only") or {one.check for one in found.results} == {*CHECKS, "curve"}


@pytest.mark.parametrize("name", foreign.WRONG)
def test_a_bug_is_named(name: str) -> None:
    decoder, how, check = foreign.WRONG[name]
    found = audit(decoder, only=[check], **how)
    assert not found.passed and found[check].status == "finding", found


def test_every_check_but_the_noted_ones_has_a_bug() -> None:
    caught = {check for _, _, check in foreign.WRONG.values()}
    assert set(CHECKS) - caught <= {"ties", "repeats"}
