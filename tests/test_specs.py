import pytest

from maskwalk.errors import MaskwalkError
from maskwalk.samplers import SAMPLERS
from maskwalk.specs import Registry, Spec, parse

TABLE: Registry[tuple] = Registry("thing", context=("seed",))


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
