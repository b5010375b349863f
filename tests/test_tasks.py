"""Prompts: what is revealed, held-out numbers, the constructed chain prompts, and refusals."""

import pytest
import torch
from scipy.stats import chisquare

from maskwalk.errors import MaskwalkError
from maskwalk.worlds.tasks import HELD_OUT, TASKS, Prompts
from maskwalk.worlds.walks import tasks
from maskwalk.worlds.walks.graphs import GRAPHS
from maskwalk.worlds.walks.laws import WALKS, WalkLaw

FALSE_ALARM = 1e-6  # of each chi-square test; seeds are fixed, so a pass stays a pass


def law_of(graph: str, walk: str = "lazy(stay=0.125)", length: int = 12, seed: int = 0) -> WalkLaw:
    return WALKS.build(walk, graph=GRAPHS.build(graph, seed=seed), length=length)


def prompts(task: str, law: WalkLaw, count: int = 50, seed: int = 0) -> Prompts:
    return TASKS.build(task, world=law, prompts=count, seed=seed)


TREE = law_of("st_er(nodes=20, p=0)")
CHAIN = law_of("community_chain(communities=6, nodes=8, p=0.2)")


def assert_only_ends(law: WalkLaw, found: Prompts) -> None:
    masked = found.tokens == law.vocab_size
    assert masked[:, 1:-1].all() and not masked[:, [0, -1]].any()
    assert found.conditional


def test_unconditional_reveals_nothing():
    found = prompts("unconditional", TREE, 5)
    assert (found.tokens == 20).all() and found.tokens.shape == (5, 12)
    assert not found.conditional


def test_endpoints_are_those_of_held_out_walks():
    found = prompts("endpoints()", TREE, 30, seed=4)
    walks = TREE.sample(30, 4, first=HELD_OUT)
    assert_only_ends(TREE, found)
    assert torch.equal(found.answers, walks)
    assert torch.equal(found.tokens[:, [0, -1]], walks[:, [0, -1]])
    training = {tuple(walk) for walk in TREE.sample(2000, 4).tolist()}
    assert not training & {tuple(walk) for walk in walks.tolist()}


def test_more_prompts_begin_with_the_same_ones():
    cross = law_of("two_communities(nodes=10, p=0.1, bridges=1)")
    for task, law in (("endpoints", TREE), ("bottleneck", cross), ("bottleneck", CHAIN)):
        few, many = prompts(task, law, 10), prompts(task, law, 25)
        assert torch.equal(few.tokens, many.tokens[:10])
        assert not torch.equal(prompts(task, law, 10, seed=1).tokens, few.tokens)


def test_a_given_pair():
    found = prompts("endpoints(start=3, end=7)", TREE, 4)
    assert_only_ends(TREE, found)
    assert found.tokens[:, 0].tolist() == [3] * 4 and found.tokens[:, -1].tolist() == [7] * 4
    assert found.answers is None


@pytest.mark.parametrize(
    "task, sentence",
    [
        ("endpoints(start=3)", "both start and end"),
        ("endpoints(end=3)", "both start and end"),
        ("endpoints(start=20, end=3)", "start=20 is the mask token"),
        ("endpoints(start=2, end=20)", "end=20 is the mask token"),
        ("endpoints(start=21, end=3)", "start must be a whole number from 0 to 19"),
        ("endpoints(start=-1, end=3)", "start must be"),
        ("bottleneck", "two_communities"),
    ],
)
def test_bad_prompts_get_a_sentence(task, sentence):
    with pytest.raises(MaskwalkError, match=sentence):
        prompts(task, TREE)


@pytest.mark.parametrize(
    "graph, walk, length",
    [
        ("st_er(nodes=6, p=0)", "lazy(stay=0.5)", 3),
        ("st_er(nodes=6, p=0)", "lazy(stay=0)", 4),
        ("st_er(nodes=6, p=0)", "distant()", 6),
        ("st_er(nodes=5, p=0)", "markov(order=2)", 3),
        ("tree_line_dag(chains=3, length=2)", "dag()", 3),
    ],
)
def test_unreachable_pairs_are_refused_and_no_others(graph, walk, length):
    law = law_of(graph, walk, length)
    joined = {(w[0], w[-1]) for w in law.support()[0].tolist()}
    refused = 0
    for start in range(law.vocab_size):
        for end in range(law.vocab_size):
            task = f"endpoints(start={start}, end={end})"
            if (start, end) in joined:
                assert prompts(task, law, 1).tokens[0, 0] == start
            else:
                refused += 1
                with pytest.raises(MaskwalkError, match=f"No walk of length {length} leads from"):
                    prompts(task, law, 1)
    assert refused and joined


@pytest.mark.parametrize("walk", ["lazy(stay=0.125)", "distant()"])
def test_two_communities_are_crossed(walk):
    law = law_of("two_communities(nodes=15, p=0.1, bridges=2)", walk)
    found = prompts("bottleneck", law, 64, seed=2)
    assert_only_ends(law, found)
    ends = law.graph.community[found.tokens[:, [0, -1]].numpy()]
    assert (ends[:, 0] != ends[:, 1]).all() and set(ends[:, 0]) == {0, 1}
    assert law.valid(found.answers).all()
    # They are the crossing ones of the held-out walks, none passed over.
    walks = law.sample(3000, 2, first=HELD_OUT)
    label = torch.from_numpy(law.graph.community)
    crossing = walks[label[walks[:, 0]] != label[walks[:, -1]]]
    assert torch.equal(found.answers, crossing[:64])
    assert found.labels["separation"].tolist() == [1] * 64


def test_bridged_prompts_are_the_construction():
    law = law_of("two_communities(nodes=15, p=0.1, bridges=3)")
    found = prompts("bottleneck(ends='built')", law, 600, seed=4)
    assert_only_ends(law, found)
    assert law.valid(found.answers).all()
    community = torch.from_numpy(law.graph.community)[found.answers]
    left = (law.length - 2 + 1) // 2  # the odd token on the left, then the bridge
    assert (community[:, : left + 1] == community[:, :1]).all()
    assert (community[:, left + 1 :] == 1 - community[:, :1]).all()
    crossed = found.answers[:, left] * 30 + found.answers[:, left + 1]
    kinds, seen = crossed.unique(return_counts=True)
    assert len(kinds) == 6 and chisquare(seen).pvalue > FALSE_ALARM  # three bridges, both ways


def test_pairs_are_uniform_among_those_a_walk_joins():
    law = law_of("two_communities(nodes=4, p=0.1, bridges=1)", length=4)
    found = prompts("bottleneck(ends='pairs')", law, 4000, seed=4)
    assert found.answers is None
    joined = {
        (a, b)
        for a in range(8)
        for b in range(8)
        if law.graph.community[a] != law.graph.community[b] and bool(law.reach(a)[b])
    }
    codes, seen = (found.tokens[:, 0] * 8 + found.tokens[:, -1]).unique(return_counts=True)
    assert {divmod(int(c), 8) for c in codes} == joined and len(joined) < 32
    assert chisquare(seen).pvalue > FALSE_ALARM


def test_crossings_too_rare_are_refused(monkeypatch):
    law = law_of("two_communities(nodes=200, p=0.2, bridges=1)", length=2)
    monkeypatch.setattr(tasks, "TRIES", 0)
    monkeypatch.setattr(tasks, "TRIES_EACH", 1000)
    with pytest.raises(MaskwalkError, match="Add bridges"):
        prompts("bottleneck", law, 100)


def test_chain_prompts_are_the_construction():
    law, graph = CHAIN, CHAIN.graph
    found = prompts("bottleneck", law, 300, seed=1)
    assert_only_ends(law, found)
    assert torch.equal(found.answers[:, [0, -1]], found.tokens[:, [0, -1]])
    assert law.valid(found.answers).all()
    for walk, h in zip(found.answers.tolist(), found.labels["separation"].tolist()):
        spare = 12 - (h + 1)
        left, right = spare - spare // 2, spare // 2  # the odd token on the left
        j = graph.community[walk[0]]
        assert walk[left : left + h + 1] == list(graph.roots[j : j + h + 1])
        assert {graph.community[x] for x in walk[:left]} <= {j}
        assert {graph.community[x] for x in walk[12 - right :]} <= {j + h}
        assert graph.community[walk[-1]] == j + h


def test_chain_separations_and_places_are_uniform():
    found = prompts("bottleneck", CHAIN, 3000)
    seen = torch.bincount(found.labels["separation"], minlength=6)[1:]
    assert chisquare(seen).pvalue > FALSE_ALARM
    two = prompts("bottleneck(separation=2)", CHAIN, 2000)
    assert two.labels["separation"].tolist() == [2] * 2000
    places = torch.from_numpy(CHAIN.graph.community)[two.tokens[:, 0]]
    seen = torch.bincount(places, minlength=4)  # j = 0..3 of six communities
    assert len(seen) == 4 and chisquare(seen).pvalue > FALSE_ALARM


@pytest.mark.parametrize("stay", [None, 0.25])
def test_chain_sides_walk_lazily_inside_the_community(stay):
    """The token next to the left root is one lazy step inside G_j away from it: by chi-square."""
    law = law_of("community_chain(communities=3, nodes=5, p=0.3)", f"lazy(stay={stay})", 8)
    graph, root = law.graph, law.graph.roots[0]
    found = prompts("bottleneck(separation=2)", law, 4000)
    left = (8 - 3) - (8 - 3) // 2
    assert (found.answers[:, left] == root).all()
    near = [
        v for u, v in zip(graph.sources, graph.targets) if u == root and graph.community[v] == 0
    ]
    s = 1 / (len(near) + 1) if stay is None else stay
    law_next = [s if v == root else (1 - s) / len(near) for v in [root, *near]]
    seen = torch.bincount(found.answers[:, left - 1], minlength=graph.nodes)[[root, *near]]
    assert seen.sum() == 4000
    assert chisquare(seen, [4000 * q for q in law_next]).pvalue > FALSE_ALARM


def test_chain_of_exactly_the_crossing():
    law = law_of("community_chain(communities=6, nodes=8, p=0.2)", length=4)
    found = prompts("bottleneck", law, 200)
    assert sorted(set(found.labels["separation"].tolist())) == [
        1,
        2,
        3,
    ]  # what fits into four tokens
    full = prompts("bottleneck(separation=3)", law, 5)
    roots = law.graph.roots
    assert all(tuple(w) in {roots[j : j + 4] for j in range(3)} for w in full.answers.tolist())
    with pytest.raises(MaskwalkError, match="separation must be a whole number from 1 to 3"):
        prompts("bottleneck(separation=4)", law, 5)


def test_other_bottlenecks_are_refused():
    with pytest.raises(MaskwalkError, match="separation must be"):
        prompts("bottleneck(separation=6)", CHAIN)
    with pytest.raises(MaskwalkError, match="separation must be"):
        prompts("bottleneck(separation=2)", law_of("two_communities(nodes=9)"))
    with pytest.raises(MaskwalkError, match="chain of communities"):
        prompts("bottleneck", law_of("community_hierarchy()"))
    with pytest.raises(MaskwalkError, match="ends"):
        prompts("bottleneck(ends='walks')", CHAIN)
    with pytest.raises(MaskwalkError, match="ends"):
        prompts("bottleneck(ends='middle')", law_of("two_communities(nodes=9)"))
    with pytest.raises(MaskwalkError, match="lazy walks"):
        prompts("bottleneck", law_of("community_chain(communities=3)", "distant()"))
    with pytest.raises(MaskwalkError, match="count must be"):
        prompts("endpoints", TREE, 0)


TREE_OF_COMMUNITIES = law_of("community_hierarchy(depth=2, branching=3, nodes=6, p=0.3)")


def way_up(community: int, branching: int = 3) -> list[int]:
    """A community and those above it, by the numbering of the family."""
    return [community] + (way_up((community - 1) // branching, branching) if community else [])


def test_level_prompts_climb_and_descend():
    law, graph = TREE_OF_COMMUNITIES, TREE_OF_COMMUNITIES.graph
    found = prompts("levels", law, 300, seed=1)
    assert_only_ends(law, found)
    assert law.valid(found.answers).all()
    assert torch.equal(found.answers[:, [0, -1]], found.tokens[:, [0, -1]])
    assert torch.equal(found.labels["separation"], 2 * found.labels["level"])
    for walk, level in zip(found.answers.tolist(), found.labels["level"].tolist()):
        first, last = (int(graph.community[node]) for node in (walk[0], walk[-1]))
        assert first >= 4 and last >= 4  # the nine at the bottom
        there, back = way_up(first), way_up(last)
        assert there[level] == back[level] and there[level - 1] != back[level - 1]
        crossing = [graph.roots[c] for c in there[: level + 1] + back[:level][::-1]]
        spare = 12 - len(crossing)
        left = spare - spare // 2  # the odd token on the left
        assert walk[left : left + len(crossing)] == crossing
        assert {graph.community[x] for x in walk[:left]} <= {first}
        assert {graph.community[x] for x in walk[left + len(crossing) :]} <= {last}


def test_levels_and_places_are_uniform():
    found = prompts("levels", TREE_OF_COMMUNITIES, 3000)
    assert chisquare(torch.bincount(found.labels["level"])[1:]).pvalue > FALSE_ALARM
    top = prompts("levels(level=2)", TREE_OF_COMMUNITIES, 3000)
    community = torch.from_numpy(TREE_OF_COMMUNITIES.graph.community)
    first, last = community[top.tokens[:, 0]] - 4, community[top.tokens[:, -1]] - 4
    pairs = torch.bincount(first * 9 + last, minlength=81).view(9, 9)
    same = torch.arange(9)[:, None] // 3 == torch.arange(9) // 3
    assert (pairs[same] == 0).all() and chisquare(pairs[~same]).pvalue > FALSE_ALARM


def test_a_lopsided_hierarchy_and_short_walks():
    """Only the bottom counts, and only as high as a walk can climb and come down."""
    law = law_of("community_hierarchy(depth=3, branching=2, nodes=4, p=0.3)", length=4)
    found = prompts("levels", law, 50)
    assert set(found.labels["level"].tolist()) == {1} and law.valid(found.answers).all()
    with pytest.raises(MaskwalkError, match="level must be a whole number from 1 to 1"):
        prompts("levels(level=2)", law)


@pytest.mark.parametrize(
    ("graph", "walk", "length", "what"),
    [
        ("community_chain(communities=3)", "lazy()", 8, "needs a hierarchy of communities"),
        ("community_hierarchy(depth=2, branching=1)", "lazy()", 8, "needs a hierarchy"),
        ("two_communities(nodes=9, bridges=9)", "lazy()", 8, "needs a hierarchy of communities"),
        ("st_er(nodes=9, p=0.1)", "lazy()", 8, "needs a hierarchy of communities"),
        ("community_hierarchy(nodes=4)", "lazy()", 2, "at least 3 tokens"),
        ("community_hierarchy(nodes=4)", "markov()", 8, "built from lazy walks"),
    ],
)
def test_other_hierarchies_are_refused(graph, walk, length, what):
    with pytest.raises(MaskwalkError, match=what):
        prompts("levels", law_of(graph, walk, length))


def test_against_the_drift():
    law = law_of("st_er(nodes=60, p=0.05)", "drift(strength=0.9)")
    found = prompts("against", law, 200, seed=3)
    walks = law.sample(200, 3, first=HELD_OUT)
    assert_only_ends(law, found)
    assert torch.equal(found.answers, walks.flip(1))  # a drift forbids no step
    assert law.log_prob(found.answers).mean() < law.log_prob(walks).mean() - 5
    few = prompts("against", law, 20, seed=3)
    assert torch.equal(few.tokens, found.tokens[:20])
    one_way = law_of("directed(nodes=40, p=0)", "lazy(stay=0.1)")
    with pytest.raises(MaskwalkError, match="can be walked backwards"):
        prompts("against", one_way, 5)
