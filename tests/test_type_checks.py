"""Shapes and types of the package's own functions are checked while the tests run."""

import pytest
import torch
from jaxtyping import TypeCheckError

from maskwalk.decoding.draw import Draw
from maskwalk.kernels.rows import probabilities
from maskwalk.stats import Estimate


def is_checked() -> bool:
    """Whether a table with one dimension too few is refused."""
    try:
        probabilities(torch.zeros(3).log_softmax(0))
    except TypeCheckError:
        return True
    return False


def test_a_wrong_shape_is_seen_in_the_first_calls_and_then_ever_less_often() -> None:
    assert [call for call in range(1, 33) if is_checked()] == [1, 2, 3, 4, 8, 16, 32]


def test_another_test_begins_with_checks() -> None:
    assert is_checked()


def test_fields_are_checked_and_an_int_is_a_float() -> None:
    assert Draw(temperature=1) == Draw(temperature=1.0)
    with pytest.raises(TypeCheckError):
        Estimate("high", 0.1, 5)  # type: ignore[arg-type]
