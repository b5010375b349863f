"""The packages of the extra `maskwalk[language]`: imported when needed, asked for in a sentence."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from maskwalk.errors import MaskwalkError


def need(module: str = "transformers") -> Any:
    """The module, or a sentence that says what to install."""
    try:
        return import_module(module)
    except ImportError as problem:
        raise MaskwalkError(
            f"Other people's language models need the package {module.split('.')[0]} "
            f"({problem}); install it with: pip install 'maskwalk[language]'."
        ) from None


@contextmanager
def quiet() -> Iterator[Any]:
    """`transformers` without progress bars and reports: what matters becomes a note or an error."""
    transformers = need()
    logging = transformers.utils.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield transformers
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
