"""maskwalk: parallel samplers of masked diffusion models, measured where the truth is known.

The names below are what a notebook needs; they are imported when first used, so that
`maskwalk --version` does not wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from maskwalk.decoding import Decoded, decode
    from maskwalk.denoisers.pretrained import from_pretrained, save_pretrained
    from maskwalk.draws import Draw, Streams
    from maskwalk.evaluation import evaluate
    from maskwalk.graphs import GRAPHS
    from maskwalk.oracles import oracle_for
    from maskwalk.samplers import SAMPLERS
    from maskwalk.tasks import TASKS
    from maskwalk.walks import WALKS

_HOME = {
    "Decoded": "decoding",
    "decode": "decoding",
    "from_pretrained": "denoisers.pretrained",
    "save_pretrained": "denoisers.pretrained",
    "Draw": "draws",
    "Streams": "draws",
    "evaluate": "evaluation",
    "GRAPHS": "graphs",
    "oracle_for": "oracles",
    "SAMPLERS": "samplers",
    "TASKS": "tasks",
    "WALKS": "walks",
}
__all__ = [
    "GRAPHS",
    "SAMPLERS",
    "TASKS",
    "WALKS",
    "Decoded",
    "Draw",
    "Streams",
    "__version__",
    "decode",
    "evaluate",
    "from_pretrained",
    "oracle_for",
    "save_pretrained",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'maskwalk' has no attribute {name!r}")
    return getattr(import_module(f"maskwalk.{_HOME[name]}"), name)
