"""maskwalk: parallel samplers of masked diffusion models, measured where the truth is known.

`PUBLIC` lists every public name and the module it comes from. A name is imported when it is first
used, so `maskwalk --version` does not wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"


class _Names(dict[str, tuple[str, ...]]):
    """Names by module, with a short repr."""

    def __repr__(self) -> str:
        names = sum(map(len, self.values()))
        return f"<{names} public names from {len(self)} modules; dir(maskwalk) lists them>"


PUBLIC = _Names(
    {
        "errors": ("MaskwalkError",),
        "streams": ("Purpose", "Streams"),
        "stats": ("Estimate",),
        "denoiser": ("Denoiser",),
        "worlds.world": ("WORLDS", "World", "as_world"),
        "worlds.tasks": ("TASKS", "Prompts"),
        "worlds.metrics": ("METRICS", "Metric", "Sample"),
        "worlds.checks": ("broken_world",),
        "worlds.exact.partition": ("Partition",),
        "worlds.walks.graphs": ("GRAPHS", "Graph"),
        "worlds.walks.laws": ("WALKS", "WalkLaw"),
        "worlds.walks.oracles": ("oracle_for",),
        "denoisers.resolve": ("DENOISERS",),
        "denoisers.arguments": ("as_denoiser",),
        "denoisers.checks": ("broken_denoiser",),
        "denoisers.files": ("from_pretrained", "save_pretrained"),
        "denoisers.language": ("Causal", "LanguageModel", "Masked", "load", "load_mdlm"),
        "denoisers.language.books": ("load_books",),
        "denoisers.language.standins": ("STAND_INS",),
        "decoding.arguments": ("as_sampler",),
        "decoding.canvas": ("Canvas", "RoundStreams"),
        "decoding.view": ("View",),
        "decoding.policy": ("SAMPLERS", "Sampler", "UnmaskingPolicy"),
        "decoding.draw": ("DRAWS", "Draw"),
        "decoding.presets": ("PRESETS",),
        "decoding.decode": ("Decoded", "decode"),
        "decoding.trace": ("Trace",),
        "decoding.generation": ("Generated", "generate"),
        "decoding.stopping": ("StopAt",),
        "analysis.law": ("sampler_law", "total_variation"),
        "analysis.replay": ("Replayed", "replay"),
        "analysis.losses": ("best_plans", "diagnose", "exact_sequences"),
        "analysis.plans": ("information_curve", "optimal_sizes"),
        "analysis.contract": ("broken_checks",),
        "bench.records": ("Record", "read_records"),
        "bench.verdict.result": ("Evaluation",),
        "bench.verdict.run": ("evaluate",),
        "bench.verdict.suite": ("Scene",),
        "report.notebook": ("Result", "Results", "run"),
        "testing.model": ("OracleModel",),
        "testing.result": ("Audit",),
        "testing.audit": ("audit",),
    }
)
_HOME = {name: module for module, names in PUBLIC.items() for name in names}
__all__ = ["PUBLIC", "__version__", *_HOME]

if TYPE_CHECKING:  # the same for type checkers, which do not run __getattr__ (tests/test_public.py)
    from maskwalk.analysis.contract import broken_checks as broken_checks
    from maskwalk.analysis.law import sampler_law as sampler_law
    from maskwalk.analysis.law import total_variation as total_variation
    from maskwalk.analysis.losses import best_plans as best_plans
    from maskwalk.analysis.losses import diagnose as diagnose
    from maskwalk.analysis.losses import exact_sequences as exact_sequences
    from maskwalk.analysis.plans import information_curve as information_curve
    from maskwalk.analysis.plans import optimal_sizes as optimal_sizes
    from maskwalk.analysis.replay import Replayed as Replayed
    from maskwalk.analysis.replay import replay as replay
    from maskwalk.bench.records import Record as Record
    from maskwalk.bench.records import read_records as read_records
    from maskwalk.bench.verdict.result import Evaluation as Evaluation
    from maskwalk.bench.verdict.run import evaluate as evaluate
    from maskwalk.bench.verdict.suite import Scene as Scene
    from maskwalk.decoding.arguments import as_sampler as as_sampler
    from maskwalk.decoding.canvas import Canvas as Canvas
    from maskwalk.decoding.canvas import RoundStreams as RoundStreams
    from maskwalk.decoding.decode import Decoded as Decoded
    from maskwalk.decoding.decode import decode as decode
    from maskwalk.decoding.draw import DRAWS as DRAWS
    from maskwalk.decoding.draw import Draw as Draw
    from maskwalk.decoding.generation import Generated as Generated
    from maskwalk.decoding.generation import generate as generate
    from maskwalk.decoding.policy import SAMPLERS as SAMPLERS
    from maskwalk.decoding.policy import Sampler as Sampler
    from maskwalk.decoding.policy import UnmaskingPolicy as UnmaskingPolicy
    from maskwalk.decoding.presets import PRESETS as PRESETS
    from maskwalk.decoding.stopping import StopAt as StopAt
    from maskwalk.decoding.trace import Trace as Trace
    from maskwalk.decoding.view import View as View
    from maskwalk.denoiser import Denoiser as Denoiser
    from maskwalk.denoisers.arguments import as_denoiser as as_denoiser
    from maskwalk.denoisers.checks import broken_denoiser as broken_denoiser
    from maskwalk.denoisers.files import from_pretrained as from_pretrained
    from maskwalk.denoisers.files import save_pretrained as save_pretrained
    from maskwalk.denoisers.language import Causal as Causal
    from maskwalk.denoisers.language import LanguageModel as LanguageModel
    from maskwalk.denoisers.language import Masked as Masked
    from maskwalk.denoisers.language import load as load
    from maskwalk.denoisers.language import load_mdlm as load_mdlm
    from maskwalk.denoisers.language.books import load_books as load_books
    from maskwalk.denoisers.language.standins import STAND_INS as STAND_INS
    from maskwalk.denoisers.resolve import DENOISERS as DENOISERS
    from maskwalk.errors import MaskwalkError as MaskwalkError
    from maskwalk.report.notebook import Result as Result
    from maskwalk.report.notebook import Results as Results
    from maskwalk.report.notebook import run as run
    from maskwalk.stats import Estimate as Estimate
    from maskwalk.streams import Purpose as Purpose
    from maskwalk.streams import Streams as Streams
    from maskwalk.testing.audit import audit as audit
    from maskwalk.testing.model import OracleModel as OracleModel
    from maskwalk.testing.result import Audit as Audit
    from maskwalk.worlds.checks import broken_world as broken_world
    from maskwalk.worlds.exact.partition import Partition as Partition
    from maskwalk.worlds.metrics import METRICS as METRICS
    from maskwalk.worlds.metrics import Metric as Metric
    from maskwalk.worlds.metrics import Sample as Sample
    from maskwalk.worlds.tasks import TASKS as TASKS
    from maskwalk.worlds.tasks import Prompts as Prompts
    from maskwalk.worlds.walks.graphs import GRAPHS as GRAPHS
    from maskwalk.worlds.walks.graphs import Graph as Graph
    from maskwalk.worlds.walks.laws import WALKS as WALKS
    from maskwalk.worlds.walks.laws import WalkLaw as WalkLaw
    from maskwalk.worlds.walks.oracles import oracle_for as oracle_for
    from maskwalk.worlds.world import WORLDS as WORLDS
    from maskwalk.worlds.world import World as World
    from maskwalk.worlds.world import as_world as as_world


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'maskwalk' has no attribute {name!r}")
    return getattr(import_module(f"maskwalk.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
