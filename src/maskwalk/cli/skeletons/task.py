"""A task: what is given of a sequence."""

NEXT = "maskwalk sample --task <NAME> --include <PATH>"

FILE = '''"""<TITLE>: every `gap`-th position of a held-out sequence is given.

Change this text with the task.
"""

import torch

from maskwalk import TASKS, MaskwalkError, Prompts

HELD_OUT = 10**9  # sequences from this number on are never trained on


@TASKS.register("<NAME>")  # the name in specs: <NAME>(gap=4)
def <NAME>(world, prompts: int, seed: int, gap: int = 4) -> Prompts:
    """Fill in between every `gap`-th position of held-out sequences."""
    if gap < 2:
        raise MaskwalkError(f"gap of <NAME> must be at least 2, not {gap}.")
    answers = world.sample(prompts, seed, HELD_OUT)
    # Change this line. True is given; some positions must be left to fill in.
    given = torch.arange(world.length) % gap == 0
    tokens = torch.where(given, answers, world.vocab_size)  # the vocabulary's size is the mask
    return Prompts(tokens, conditional=True, answers=answers)
'''

TEST = '''"""<NAME> asks what it says: pytest test_<NAME>.py"""

import torch
from <NAME> import <NAME>

import maskwalk

WORLD = "walk(graph=st_er(nodes=30, p=0.1), length=9)"


def test_every_gap_is_given_and_the_rest_masked():
    world = maskwalk.WORLDS.build(WORLD)
    prompts = <NAME>(world, 16, seed=1, gap=4)
    given = prompts.tokens != world.vocab_size
    assert given.sum(1).tolist() == [3] * 16 and given[:, [0, 4, 8]].all()
    assert torch.equal(prompts.tokens[given], prompts.answers[given])
    assert world.valid(prompts.answers).all()  # every prompt can be completed


def test_a_prompt_does_not_depend_on_how_many_there_are():
    world = maskwalk.WORLDS.build(WORLD)
    assert torch.equal(<NAME>(world, 8, seed=1).tokens[:3], <NAME>(world, 3, seed=1).tokens)


def test_what_is_given_is_kept():
    result = maskwalk.run("bisection", world=WORLD, task="<NAME>", count=16)
    prompts = <NAME>(result.world, 16, seed=0)
    given = prompts.tokens != result.world.vocab_size
    assert torch.equal(result.tokens[given], prompts.tokens[given]) and result.coherence == 1.0
'''
