from pathlib import Path

import pytest

from maskwalk.errors import MaskwalkError
from maskwalk.samplers import SAMPLERS
from maskwalk.specs import Registry, Spec, load_installed_plugins, load_plugin, parse
from maskwalk.specs.registry import TABLES
from maskwalk.worlds.tasks import TASKS
from maskwalk.worlds.walks.graphs import GRAPHS

TABLE: Registry[tuple] = Registry("thing", context=("seed",))
TABLES.remove(TABLE)  # its members are nobody's: they belong into no key of a cell


@pytest.fixture(autouse=True)
def tables_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables that a test makes are not among those of the package, whose names count."""
    monkeypatch.setattr("maskwalk.specs.registry.TABLES", [])


@TABLE.register("pair")
def pair(a: int, b: float = 0.5, inner: tuple | None = None, *, seed: int = 0) -> tuple:
    """Two values and perhaps another thing."""
    return (a, b, inner, seed)


def test_parse_reads_literals_and_nested_specs() -> None:
    assert parse("f(1, x=-2.5, y='a', z=(1, 2), w=None, v=g(k=True))") == Spec(
        "f",
        (1,),
        {"x": -2.5, "y": "a", "z": (1, 2), "w": None, "v": Spec("g", (), {"k": True})},
    )
    assert parse(" bare ") == Spec("bare")


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "f(x=open('secret'))",  # a nested spec by grammar; refused when built, below
        "f(x=1+g())",
        "f(x=[i for i in (1, 2)])",
        "f(x=lambda: 0)",
        "f(**{'a': 1})",
        "f(*[1])",
        "f(a=1, a=2)",
        "f(",
        "",
        "3",
        "f(x=" + "(" * 5000,
        "f.g(x=1)",
        "f(x=y.z)",
        "\0",
    ],
)
def test_code_and_nonsense_are_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(MaskwalkError) as caught:
        SAMPLERS.build(text)
    assert str(caught.value).endswith(".")


def test_unknown_names_suggest_the_nearest() -> None:
    with pytest.raises(MaskwalkError, match="Did you mean 'bisection'"):
        SAMPLERS.build("bisecton(order=1)")
    with pytest.raises(MaskwalkError, match="Did you mean 'order'"):
        SAMPLERS.build("bisection(ordr=1)")
    with pytest.raises(MaskwalkError, match="needs a="):
        TABLE.build("pair()")
    with pytest.raises(MaskwalkError, match="at most 3"):
        TABLE.build("pair(1, 2, None, 4)")
    with pytest.raises(MaskwalkError, match="twice"):
        TABLE.build("pair(1, a=2)")


def test_build_injects_context_and_builds_nested() -> None:
    assert TABLE.build("pair(1, inner=pair(2))", seed=9) == (1, 0.5, (2, 0.5, None, 9), 9)


def test_canonical_writes_every_parameter_and_is_stable() -> None:
    text = TABLE.canonical("pair(1, inner=pair(b=3, a=2))")
    assert text == "pair(a=1, b=0.5, inner=pair(a=2, b=3, inner=None))"
    assert TABLE.canonical(text) == text


@pytest.mark.parametrize(
    "spec",
    [
        "bisection(order=0)",
        "bisection(order=True)",
        "guided_bisection(score='entrpy')",
        "entropy(block=0)",
        "entropy(block='doubling')",
        "random(block=-3)",
    ],
)
def test_bad_parameters_are_refused_at_construction(spec: str) -> None:
    with pytest.raises(MaskwalkError):
        SAMPLERS.build(spec)


# ---- who owns a name, and where members come from


def test_a_table_refuses_a_second_owner_of_a_name(tmp_path: Path) -> None:
    table: Registry[int] = Registry("thing")

    @table.register("one")
    def first() -> int:
        return 1

    with pytest.raises(
        MaskwalkError, match=r"There is a thing 'one' already, from tests\.test_specs"
    ):

        @table.register("one")
        def second() -> int:
            return 2

    assert table.build("one") == 1
    with pytest.raises(MaskwalkError, match="There is a sampler 'random' already"):
        SAMPLERS.register("random")(lambda: None)


def test_a_file_may_be_loaded_again_and_another_may_not_take_its_names(tmp_path: Path) -> None:
    code = "from maskwalk import GRAPHS\n@GRAPHS.register('mine')\ndef mine(seed): return 1\n"
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    for folder in ("a", "b"):
        (tmp_path / folder / "mine.py").write_text(code)
    try:
        load_plugin(str(tmp_path / "a" / "mine.py"))
        load_plugin(str(tmp_path / "a" / "mine.py"))  # edited, say
        with pytest.raises(MaskwalkError, match="There is a graph 'mine' already"):
            load_plugin(str(tmp_path / "b" / "mine.py"))
    finally:
        GRAPHS._members.pop("mine", None)


def test_installed_packages_register_through_an_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A distribution on the path, as pip would leave it."""
    (tmp_path / "walks_plus.py").write_text(
        "from maskwalk import TASKS\n@TASKS.register('middle')\n"
        "def middle(world, prompts, seed): 'The middle token revealed.'\n"
    )
    info = tmp_path / "walks_plus-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: walks-plus\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[maskwalk.plugins]\nplus = walks_plus\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    load_installed_plugins.cache_clear()
    try:
        assert load_installed_plugins() == ("plus",)
        assert TASKS.summary("middle") == "The middle token revealed."
        (info / "entry_points.txt").write_text("[maskwalk.plugins]\nplus = walks_minus\n")
        load_installed_plugins.cache_clear()
        with pytest.raises(MaskwalkError, match=r"The plug-in plus \(walks_minus\) failed: Module"):
            load_installed_plugins()
    finally:
        TASKS._members.pop("middle", None)
        load_installed_plugins.cache_clear()


def test_parts_of_a_spec_are_made_canonical_by_their_own_table() -> None:
    colours: Registry[str] = Registry("colour")
    colours.register("red")(lambda depth=1: f"red{depth}")
    shapes: Registry[str] = Registry("shape")

    @shapes.register("box", parts={"colour": colours})
    def box(colour: str = "red", size: int = 2) -> str:
        return f"{colours.build(colour)}/{size}"

    assert shapes.canonical("box()") == "box(colour=red(depth=1), size=2)"
    assert shapes.canonical("box(red(depth=3))") == "box(colour=red(depth=3), size=2)"
    assert shapes.build("box(colour=red(3), size=4)") == "red3/4"
    with pytest.raises(MaskwalkError, match="Unknown colour 'rad'"):
        shapes.canonical("box(rad())")


def test_lists_of_specs_are_read_shown_and_built_where_they_are_wanted() -> None:
    table: Registry[list] = Registry("heap", context=("seed",))

    @table.register("all", several=("parts",))
    def together(parts: list, seed: int = 0) -> list:
        return [*parts, seed]

    @table.register("one")
    def one(a: int = 1) -> list:
        return [a]

    assert parse("f(x=[g(1), h(y=[2, 3])])").kwargs["x"] == [
        Spec("g", (1,)),
        Spec("h", (), {"y": [2, 3]}),
    ]
    text = table.canonical("all([one, all(parts=[one(a=3)])])")
    assert text == "all(parts=[one(a=1), all(parts=[one(a=3)])])"
    assert table.canonical(text) == text
    assert table.build(text, seed=7) == [[1], [[3], 7], 7]
    for wrong in ("all(parts=[])", "all(parts=3)", "all(parts=one())", "all(parts=[one(), 'x'])"):
        with pytest.raises(MaskwalkError, match="must be a list of heaps as specs"):
            table.build(wrong)
    with pytest.raises(MaskwalkError, match="takes no list of specs"):
        table.build("one(a=[one()])")
    for code in ("all(parts=[x for x in y])", "all(parts=[one(), 1 + 1])", "all(parts=[one().a])"):
        with pytest.raises(MaskwalkError):
            table.build(code)


def test_a_file_that_is_loaded_again_has_its_new_defaults(tmp_path: Path) -> None:
    file = tmp_path / "edited_defaults.py"
    for value in (1, 2):
        file.write_text(
            "from maskwalk import GRAPHS\n\n"
            f"@GRAPHS.register('edited_defaults')\ndef make(n=3, *, seed, k={value}): ...\n"
        )
        load_plugin(str(file))
        assert GRAPHS.canonical("edited_defaults") == f"edited_defaults(n=3, k={value})"


def test_a_spec_that_is_changed_leaves_the_next_one_alone() -> None:
    for _ in range(2):
        spec = parse("outer(k=1, inner=part(n=2))")
        assert spec == Spec("outer", (), {"k": 1, "inner": Spec("part", (), {"n": 2})})
        spec.kwargs["k"], spec.kwargs["inner"].kwargs["n"] = 5, 6
