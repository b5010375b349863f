import math

import pytest
import torch

from maskwalk.decoding.scores import score
from maskwalk.errors import MaskwalkError


def test_scores_by_hand() -> None:
    p = torch.tensor([[0.5, 0.25, 0.25, 0.0], [0.0, 0.0, 1.0, 0.0]], dtype=torch.float64).log()
    h = 0.5 * math.log(2) + 0.5 * math.log(4)
    assert score("entropy", p, 1e-9).tolist() == pytest.approx([h, 0.0])
    assert score("confidence", p, 1e-9).tolist() == pytest.approx([-0.5, -1.0])
    assert score("margin", p, 1e-9).tolist() == pytest.approx([-0.25, -1.0])
    one = torch.zeros((1, 1), dtype=torch.float64)
    assert score("margin", one, 1e-9).tolist() == [-1.0]


def test_rounding_makes_near_ties_ties() -> None:
    p = torch.tensor([[0.5, 0.5], [0.5 + 2e-6, 0.5 - 2e-6]], dtype=torch.float64).log()
    coarse, fine = score("confidence", p, 1e-4), score("confidence", p, 1e-9)
    assert coarse[0] == coarse[1] and fine[0] != fine[1]


def test_unknown_score() -> None:
    with pytest.raises(MaskwalkError, match="entropy"):
        score("entropi", torch.zeros((1, 1)), 1e-9)
