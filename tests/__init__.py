"""Types and shapes are checked while the tests run: jaxtyping's annotations, beartype's checks.

A check costs more than most functions it guards: decoding is five times as slow with all of them.
So each test (with all of its parameters) has a function checked in the first four calls, and then
in the 8th, 16th, 32nd, … An int is a float (PEP 484).
"""

import dataclasses
import functools
import inspect
from collections.abc import Callable
from types import CodeType
from typing import Any

import jaxtyping

test = ""  # the one that runs, without its parameters; conftest.py says which
_calls: dict[CodeType, tuple[str, int]] = {}  # the test last seen, and the calls in it


def _in_turn(fn: Callable[..., Any], make_checked: Callable[[], Callable[..., Any]]) -> Any:
    """`fn`, checked as often as said above. Functions made by one `def` are counted together."""
    checked: Callable[..., Any] | None = None

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        nonlocal checked
        of, calls = _calls.get(fn.__code__, (test, 0))
        calls = calls + 1 if of is test else 1
        _calls[fn.__code__] = test, calls
        if calls > 4 and calls & (calls - 1):
            return fn(*args, **kwargs)
        checked = checked or make_checked()
        return checked(*args, **kwargs)

    return call


def _jaxtyped(*, typechecker: Any) -> Callable[[Any], Any]:
    """Stands in for `jaxtyping.jaxtyped`, which the import hook puts on functions and classes."""
    every_call = _every_call(typechecker=typechecker)

    def decorate(target: Any) -> Any:
        if inspect.isfunction(target):
            return _in_turn(target, lambda: every_call(target))
        own = vars(target).get("__init__") if inspect.isclass(target) else None
        if dataclasses.is_dataclass(target) and inspect.isfunction(own) and not _done(own):
            target.__init__ = _in_turn(own, lambda: every_call(own))
            return target
        return target if inspect.isclass(target) else every_call(target)

    return decorate


def _done(fn: Any) -> bool:
    return hasattr(fn, "__wrapped__")


try:
    from beartype import BeartypeConf, beartype
except ImportError:  # the GPU tests also run where nothing can be installed
    pass
else:
    checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
    _every_call = jaxtyping.jaxtyped
    jaxtyping.jaxtyped = _jaxtyped  # type: ignore[assignment]
