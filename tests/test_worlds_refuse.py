"""Worlds and tasks that cannot be: each gets a sentence that says why."""

from math import inf, nan
from typing import Any

import pytest
import torch

from maskwalk import TASKS, WORLDS, MaskwalkError

BAD_WORLDS: list[tuple[str, dict[str, Any], str]] = [
    ("latin", {"n": 1}, "n must be a whole number at least 2, not 1"),
    ("latin", {"n": 6}, "from 2 to 5, not 6: all squares are listed"),
    ("sudoku", {"box": 1}, "box must be a whole number at least 2"),
    ("sudoku", {"box": 4}, "box must be 2 (4 × 4, exact) or 3 (9 × 9, checked), not 4"),
    ("addition", {"digits": 0}, "digits must be a whole number from 1 to 1000, not 0"),
    ("addition", {"base": 1}, "base must be a whole number from 2 to 64, not 1"),
    ("addition", {"order": "revesred"}, "Unknown order 'revesred'. Did you mean 'reversed'"),
    ("regular", {"length": 0}, "length must be a whole number from 1 to 65535, not 0"),
    ("regular", {"length": 1}, "No words of length 1 over 'abcd' match"),
    ("regular", {"pattern": ""}, "No words of length 16 over 'abcd' match ''"),
    ("regular", {"pattern": "(ab"}, "at place 4: a bracket is not closed"),
    ("regular", {"pattern": "ab)"}, "at place 3: ')' has no partner"),
    ("regular", {"pattern": "*a"}, "at place 1: nothing stands before '*'"),
    ("regular", {"pattern": "a|+"}, "nothing stands before '+'"),
    ("regular", {"pattern": "[ab"}, "is not closed"),
    ("regular", {"pattern": "a{2,1}"}, "the lower first"),
    ("regular", {"pattern": "a{²}"}, "a count is {2}, {2,} or {2,4}"),
    ("regular", {"pattern": "a{1001}"}, "counts go from 0 to 1000"),
    ("regular", {"pattern": "a{0,1000}"}, "is nested too deep; take smaller counts"),
    ("regular", {"pattern": "(.*a){1}.{11}a.*"}, "needs more than 2,000 states"),
    ("regular", {"pattern": "ax"}, "at place 2: 'x' is not in the alphabet 'abcd'"),
    ("regular", {"pattern": "a\\"}, "nothing stands after the backslash"),
    ("regular", {"alphabet": ""}, "alphabet must be different letters"),
    ("regular", {"alphabet": "aba"}, "alphabet must be different letters"),
    ("regular", {"weights": [1.0]}, "weights must be a list of 4 numbers"),
    ("regular", {"weights": [1.0, 1.0, 1.0, nan]}, "a weight must be a number, not nan"),
    ("regular", {"weights": [1.0, 1.0, 1.0, inf]}, "a weight must be between 0 and 1e+06"),
    ("regular", {"weights": [0.0, 0.0, 1.0, 1.0]}, "No words of length 16"),
    ("regular", {"accepting": [0]}, "accepting lists states of a dfa"),
    ("regular", {"dfa": []}, "dfa must be a list of rows with 4 states each"),
    ("regular", {"dfa": [[0, 0]]}, "dfa must be a list of rows with 4 states each"),
    (
        "regular",
        {"dfa": [[1] * 4], "accepting": [0]},
        "a state of dfa must be a whole number from -1 to 0",
    ),
    ("regular", {"dfa": [[0] * 4]}, "accepting must list the states a word may end in"),
    ("regular", {"dfa": [[0] * 4], "accepting": []}, "accepting must list the states"),
    ("regular", {"dfa": [[0] * 4], "accepting": [1]}, "an accepting state must be"),
    ("regular", {"dfa": [[-1] * 4], "accepting": [0]}, "are accepted by this automaton"),
    ("dyck", {"length": 7}, "length must be even, not 7"),
    ("dyck", {"length": 0}, "length must be a whole number from 2"),
    ("dyck", {"kinds": 5}, "kinds must be a whole number from 1 to 4, not 5"),
    ("dyck", {"depth": 0}, "depth must be a whole number at least 1"),
    ("dyck", {"kinds": 4, "depth": 9, "length": 40}, "more than 20,000 stacks of 4 kinds"),
    ("hmm", {"states": 0}, "states must be a whole number from 1 to 256"),
    ("hmm", {"states": 8, "successors": 9}, "successors must be a whole number from 1 to 8"),
    ("hmm", {"tokens": 12, "emissions": 13}, "emissions must be a whole number from 1 to 12"),
    (
        "hmm",
        {"states": 256, "successors": 256, "tokens": 9, "emissions": 9},
        "over 200,000 edges; take fewer states",
    ),
    ("pcfg", {"length": 129}, "length must be a whole number from 1 to 128"),
    ("pcfg", {"nonterminals": 3, "branches": 10}, "branches must be a whole number from 1 to 9"),
    ("pcfg", {"words": 5, "lexicon": 6}, "lexicon must be a whole number from 1 to 5"),
    ("pcfg", {"grammar": 'S -> "a" [1.0]', "length": 2}, "no sentence of 2 words"),
    ("pcfg", {"grammar": "S"}, "Cannot read the rule 'S'"),
    ("pcfg", {"grammar": "-> S S [1.0]"}, "Cannot read the rule"),
    ("pcfg", {"grammar": 'S -> "a"'}, "has no probability"),
    ("pcfg", {"grammar": 'S -> "a" [+-]'}, "'+-' is not a probability from 0 to 1"),
    ("pcfg", {"grammar": 'S -> S S [0.5] | "a" [1.5] | "b" [-1]'}, "'1.5' is not a probability"),
    ("pcfg", {"grammar": 'S -> S S [0.5] | "a" [0.4]'}, "of the rules of S do not sum to 1"),
    ("pcfg", {"grammar": "S -> S S [1.0]"}, "has no words; put them in quotes"),
    ("pcfg", {"grammar": 'S -> S T [0.5] | "a" [0.5]'}, "There is no rule for T"),
    ("pcfg", {"grammar": 'S -> S [0.5] | "a" [0.5]'}, "S -> S is not in Chomsky normal form"),
    ("pcfg", {"grammar": 'S -> S "a" [0.5] | "a" [0.5]'}, "S -> S a is not in Chomsky"),
    ("pcfg", {"grammar": 'S -> S S S [0.5] | "a" [0.5]'}, "S -> S S S is not in Chomsky"),
    ("hierarchy", {"depth": 0}, "depth must be a whole number from 1 to 12"),
    ("hierarchy", {"symbols": 1}, "symbols must be a whole number from 2"),
    (
        "hierarchy",
        {"symbols": 8, "synonyms": 9},
        "need 72 different tuples; there are only 64. Take fewer",
    ),
    ("hierarchy", {"depth": 12, "branching": 3}, "531,441 leaves, over 4,096"),
    (
        "hierarchy",
        {"depth": 1, "branching": 8, "symbols": 64},
        "take fewer symbols or less branching",
    ),
    ("hierarchy", {"nodes": "show"}, "Unknown nodes 'show'. Did you mean 'shown'"),
    ("potts", {"beta": inf}, "beta must be between -20 and 20, not inf"),
    ("potts", {"beta": -inf}, "beta must be between -20 and 20, not -inf"),
    ("potts", {"beta": nan}, "beta must be a number, not nan"),
    ("potts", {"height": 0}, "height must be a whole number at least 1"),
    ("potts", {"width": 0}, "width must be a whole number at least 1"),
    ("potts", {"states": 1}, "states must be a whole number at least 2"),
    ("potts", {"height": 10}, "has 2^10 states, more than 512: take a lower strip"),
    ("potts", {"height": 10**6}, "more than 512"),
    ("potts", {"order": "row"}, "Unknown order 'row'. Did you mean 'rows'"),
]


@pytest.mark.parametrize(("name", "values", "says"), BAD_WORLDS)
def test_a_world_that_cannot_be(name: str, values: dict[str, Any], says: str) -> None:
    with pytest.raises(MaskwalkError) as problem:
        WORLDS[name](**values)
    assert says in str(problem.value)


@pytest.mark.parametrize(
    ("world", "task", "says"),
    [
        ("dyck()", "clues(count=4)", "clues is a task of grids: latin(…) or sudoku(…)"),
        ("latin()", "clues(count=16)", "count must be a whole number from 0 to 15, not 16"),
        ("sudoku(box=3)", "clues(count=29)", "count must be a whole number from 30 to 80, not 29"),
        ("potts()", "operands", "operands is a task of sums, addition"),
        ("hmm()", "sum", "sum is a task of sums, addition"),
        ("latin()", "frame", "frame is a task of strips, potts"),
        ("potts(height=2)", "frame", "all border: frame needs at least 3 × 3 cells"),
        ("latin()", "given(share=1.0)", "share=1.0 gives all 16 positions and leaves nothing"),
        ("latin()", "given(share=0.99)", "leaves nothing to fill in"),
        ("latin()", "given(share=-0.1)", "share must be between 0 and 1, not -0.1"),
        ("latin()", "prefix(share=1.0)", "leaves nothing to fill in"),
        ("latin()", "given(shrae=0.5)", "Did you mean 'share'"),
    ],
)
def test_a_task_that_cannot_be(world: str, task: str, says: str) -> None:
    with pytest.raises(MaskwalkError) as problem:
        TASKS.build(task, world=WORLDS.build(world), prompts=3, seed=0)
    assert says in str(problem.value)


def test_sequences_of_another_world() -> None:
    world = WORLDS.build("latin(n=3)")
    oracle, tokens = world.oracle(), world.sample(2, 0)
    with pytest.raises(MaskwalkError, match="have 8 tokens; this world's have 9"):
        world.log_prob(tokens[:, :8])
    with pytest.raises(MaskwalkError, match="tokens from 0 to 3; the world's are 0 to 2, and 3 is"):
        world.valid(torch.where(tokens == 1, 3, tokens))
    with pytest.raises(
        MaskwalkError, match="canvas has 8 positions but the world's sequences have 9"
    ):
        oracle(tokens[:, :8])
    with pytest.raises(MaskwalkError, match="they are 0 to 2, and 3 is the mask"):
        oracle(torch.where(tokens == 1, 4, tokens))
    with pytest.raises(MaskwalkError, match="asked at a revealed position"):
        oracle(tokens, tokens == 1)


@pytest.mark.parametrize(
    ("spec", "task", "revealed"),
    [
        ("latin(n=3)", "clues(count=4)", None),
        ("addition(digits=2)", "operands", [0, 1, 2, 3]),
        ("addition(digits=2, order='interleaved')", "sum", [2, 5, 6]),
        ("addition(digits=2, order='reversed')", "sum", [4, 5, 6]),
        ("potts(height=3, width=3)", "frame", [0, 1, 2, 3, 5, 6, 7, 8]),
        ("potts(height=3, width=4, order='columns')", "frame", [*range(4), 5, 6, 8, 9, 10, 11]),
        ("dyck()", "prefix(share=0.25)", [0, 1, 2, 3]),
        ("hmm()", "given(share=0.25)", None),
    ],
)
def test_what_the_tasks_reveal(spec: str, task: str, revealed: list[int] | None) -> None:
    world = WORLDS.build(spec)
    prompts = TASKS.build(task, world=world, prompts=40, seed=2)
    shown = prompts.tokens != world.vocab_size
    assert prompts.answers is not None and bool(world.valid(prompts.answers).all())
    assert torch.equal(prompts.tokens[shown], prompts.answers[shown])
    if revealed is None:  # so many, anywhere
        assert set(shown.sum(1).tolist()) == {4 if task.startswith("clues") else 6}
        assert bool(shown.any(0).all()) and not bool(shown.all(0).any())
    else:
        wanted = torch.isin(torch.arange(world.length), torch.tensor(revealed))
        assert torch.equal(shown, wanted.expand_as(shown))


def test_a_word_where_a_number_belongs_gets_a_sentence() -> None:
    with pytest.raises(MaskwalkError, match="beta of world 'potts' must be a number, not inf"):
        WORLDS.build("potts(beta=inf)")
