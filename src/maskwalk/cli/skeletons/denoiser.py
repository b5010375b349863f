"""A denoiser: what answers about masked positions."""

NEXT = "maskwalk sample --denoiser <NAME> --include <PATH>"

FILE = '''"""<TITLE>: the oracle's marginals mixed with the uniform law, (1 - blur) p + blur / V.

Change this text with the denoiser.
"""

from maskwalk import DENOISERS, MaskwalkError


@DENOISERS.register("<NAME>")  # the name in specs: <NAME>(blur=0.05)
class <CLASS>:
    """The oracle of the world, blurred: a share `blur` of every answer is uniform."""

    score_grid = 1e-9  # scores nearer than this are ties: wider than your rounding errors

    def __init__(self, world, blur: float = 0.05):
        if not 0 <= blur <= 1:
            raise MaskwalkError(f"blur of <NAME> must lie between 0 and 1, not {blur}.")
        self.oracle, self.blur = world.oracle(), blur
        self.vocab_size, self.mask_id = world.vocab_size, self.oracle.mask_id

    def __call__(self, tokens, at=None):
        """Log-marginals (rows, vocabulary) of the masked positions, or of those named by `at`."""
        # Change these lines. Rows are packed in the order of `at`, sum to 1, and depend on nothing
        # but their own sequence; your network goes here.
        probs = self.oracle(tokens, at).exp()
        return ((1 - self.blur) * probs + self.blur / self.vocab_size).log()
'''

TEST = '''"""<NAME> answers as a denoiser must: pytest test_<NAME>.py"""

import torch
from <NAME> import <CLASS>

import maskwalk

WORLD = "walk(graph=st_er(nodes=30, p=0.1), length=6)"


def test_it_keeps_what_every_denoiser_keeps():
    world = maskwalk.WORLDS.build(WORLD)
    assert maskwalk.broken_denoiser(<CLASS>(world), world.sample(4, 0)) == {}


def test_without_blur_it_is_the_oracle():
    world = maskwalk.WORLDS.build(WORLD)
    tokens = world.sample(4, 0)
    tokens[:, 2:4] = world.vocab_size
    assert torch.allclose(<CLASS>(world, blur=0.0)(tokens).exp(), world.oracle()(tokens).exp())


def test_blur_breaks_walks():
    settings = {"world": WORLD, "count": 64}
    result = maskwalk.run("left_to_right", denoiser="<NAME>(blur=0.5)", **settings)
    assert result.coherence < 0.5
'''
