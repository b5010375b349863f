"""The grammar of specs under random text: it is read, or it is a sentence; nothing else happens."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwalk.cli.catalogue import all_tables
from maskwalk.errors import MaskwalkError
from maskwalk.specs import Spec, parse
from tests.abuse.own import without_type_checks
from tests.abuse.sweep import KINDS, context

TABLES = {name: table for name, table in all_tables().items() if name in KINDS}
NAMES = sorted({name for table in TABLES.values() for name in table if name != "text"})
KEYS = sorted(
    {p.name for table in TABLES.values() for name in table for p in table.parameters(name)}
)
LITERALS = st.one_of(
    st.integers(-3, 40),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.none(),
    st.text(max_size=6),
    st.binary(max_size=3),
    st.lists(st.integers(0, 3), max_size=3),
    st.tuples(st.integers(0, 3), st.floats(0, 1)),
)


def shown(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "1e999" if value > 0 else "-1e999"
    return str(value) if isinstance(value, Spec) else repr(value)


def written(name: str, args: list[Any], kwargs: dict[str, Any]) -> str:
    parts = [shown(value) for value in args]
    return f"{name}({', '.join([*parts, *(f'{k}={shown(v)}' for k, v in kwargs.items())])})"


def grown(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    values = st.one_of(LITERALS, inner)
    return st.builds(
        Spec,
        st.sampled_from(NAMES),
        st.lists(values, max_size=2).map(tuple),
        st.dictionaries(st.sampled_from(KEYS), values, max_size=3),
    )


SPECS = st.recursive(st.sampled_from(NAMES).map(Spec), grown, max_leaves=4)
TEXTS = st.one_of(
    SPECS.map(lambda spec: written(spec.name, list(spec.args), dict(spec.kwargs))),
    st.text(max_size=30),
    st.text("abst_er(),=[]{}'\"0123456789.-+e *:#\\\n", max_size=40),
)


@given(TEXTS)
def test_text_is_read_or_refused(text: str) -> None:
    try:
        spec = parse(text)
    except MaskwalkError as problem:
        assert str(problem)
        return
    assert parse(str(spec)) == spec  # what is read is written so that it is read again


@pytest.mark.parametrize("kind", KINDS)
@given(text=TEXTS)
def test_canonical_is_settled(kind: str, text: str) -> None:
    """The canonical form of a spec is its own canonical form."""
    table = TABLES[kind]
    try:
        once = table.canonical(text)
    except MaskwalkError:
        return
    assert table.canonical(once) == once


def own(kind: str) -> st.SearchStrategy[Spec]:
    """Specs of a table's members, with their own parameters."""
    values = st.one_of(LITERALS, st.sampled_from(NAMES).map(Spec))
    members = []
    for name in [name for name in TABLES[kind] if name != "text"]:
        keys = [p.name for p in TABLES[kind].parameters(name)] or ["x"]
        kwargs = st.dictionaries(st.sampled_from(keys), values, max_size=3)
        members.append(st.builds(Spec, st.just(name), st.just(()), kwargs))
    return st.one_of(members)


OWN = {kind: own(kind) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_a_spec_builds_or_is_refused(kind: str, data: st.DataObject) -> None:
    spec, table = data.draw(OWN[kind]), TABLES[kind]
    try:
        with without_type_checks():
            table.build(written(spec.name, [], spec.kwargs), **context(table.kind))
    except MaskwalkError as problem:
        assert str(problem)
