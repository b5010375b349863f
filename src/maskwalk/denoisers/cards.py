"""Model cards: what a model of the zoo learned, how well, and what it is not for.

A card is made from the model's entry in `zoo/manifest.json` alone, so that it cannot say anything
the file does not hold. `maskwalk zoo NAME` prints one; docs/models.md has them all.
"""

from typing import Any

from maskwalk.denoisers.network.outputs import PLAIN
from maskwalk.denoisers.network.weights import DDiTConfig
from maskwalk.stats import half_width

SMALL = "; a small network, so its errors are larger than they need be"
PAPER = 500_000  # parameters: those of walks have the paper's size, those of other worlds are small

HEAD = """# Model cards

{count} models come with the package: {walks} of walks on graphs, {worlds} of other worlds, {books}
of books. Each is a file in `zoo/`, learned from samples alone. Use one wherever a denoiser is
named: it brings its world, or its tokenizer.

    maskwalk zoo                  # all of them, in a table
    maskwalk zoo st_er_deg7       # one card
    maskwalk zoo --cards          # this page

- **Intended use:** testing decoding policies where the truth is known, and trying the commands
  without training. **Not for** writing texts; no evidence about models of billions of parameters.
- **Data:** walks and sequences are drawn from the distribution that the card names. The books are
  those of [language.md](language.md).
- **Licence:** Apache-2.0, as the code.

*Bound* is the held-out evidence bound in nats per token (of a causal model the exact value), ± half
of a 95 % interval. *Floor* is what a perfect denoiser has. *Coherence* is the share of 512
sequences that the world can produce, with exact draws. Methods: [training.md](training.md). The
small models on their tasks: [worlds.md](worlds.md#model-card-the-small-models-of-worlds).
"""


def page(models: dict[str, dict[str, Any]]) -> str:
    """Every card, under one introduction."""
    books = sum("tokenizer" in about for about in models.values())
    walks = sum("graph" in about for about in models.values())
    head = HEAD.format(
        count=len(models),
        walks=walks,
        worlds=len(models) - walks - books,
        books=books,
    )
    return "\n".join([head, *(card(name, about) for name, about in models.items())])


def card(name: str, about: dict[str, Any]) -> str:
    """The card of one model, in Markdown."""
    rows = [(title, text) for title, text in _rows(name, about) if text]
    table = [f"| {title} | {text} |" for title, text in rows]
    return "\n".join([f"## zoo:{name}", "", "| | |", "|---|---|", *table, ""])


def _rows(name: str, about: dict[str, Any]) -> list[tuple[str, str]]:
    text = "tokenizer" in about
    return [
        ("learned", _corpus(about) if text else _law(about)),
        ("network", _network(about)),
        ("training", _training(about)),
        ("bound", _bound(about)),
        ("coherence", "" if text else _coherence(about)),
        ("limits", _limits(about)),
        ("use", f"`maskwalk {'generate' if text else 'sample'} --denoiser zoo:{name}`"),
        ("file", f"`zoo/{about['file']}`, SHA-256 `{about['sha256'][:16]}…`"),
    ]


def _law(about: dict[str, Any]) -> str:
    count = f"{about['walks']:,}"
    if "graph" in about:
        return (
            f"{count} walks of {about['length']} nodes on `{about['graph']}`, graph seed "
            f"{about['graph_seed']}, under `{about['walk']}`"
        )
    return f"{count} sequences of `{about['world']}`"


def _corpus(about: dict[str, Any]) -> str:
    train = about["corpus"]["train"]
    return (
        f"{train['books']} books ({train['bytes'] / 1e6:.0f} MB, {train['tokens'] / 1e6:.1f} "
        f"million tokens) in passages of {about['config']['length']} tokens; "
        f"{about['corpus']['test']['books']} more for the test"
    )


def _network(about: dict[str, Any]) -> str:
    config = DDiTConfig.from_json(about["config"])
    what = "causal transformer" if config.causal else "masked denoiser (DDiT)"
    return (
        f"{what}, {config.parameters / 1e6:.2f} million parameters: hidden {config.hidden}, "
        f"{config.blocks} blocks, {config.heads} heads, {config.vocab_size:,} tokens"
        + ("" if config.output == PLAIN else f"; output `{config.output}`")
    )


def _training(about: dict[str, Any]) -> str:
    asked, others = about["settings"], about.get("trained_together", 1) - 1
    together = f" together with {others} others" if others else ""
    return (
        f"{asked['steps']:,} steps of {asked['batch']:,} sequences, learning rate {asked['lr']:g}, "
        f"dropout {asked['dropout']:g}, {_contexts(about)}seed {asked['seed']}; "
        f"{about['seconds']:.0f} s on one "
        f"{about['device']}{together}, {about['trained']}, commit {about['commit'][:7]}"
    )


def _contexts(about: dict[str, Any]) -> str:
    """In which contexts it learned, where they are not those of the paper."""
    masking = about.get("masking")
    return f"masking `{masking}`, " if masking else ""


def _bound(about: dict[str, Any]) -> str:
    shown = f"{about['bound']:.3f} ± {half_width(about['bound_se']):.3f} nats per token"
    if "floor" in about:
        shown += f", floor {about['floor']:.3f}"
    if "test_bpb" in about:
        bits, error = about["test_bpb"]["value"], half_width(about["test_bpb"]["se"])
        shown += f"; {bits:.3f} ± {error:.3f} bits per byte of the test books"
    return shown


def _coherence(about: dict[str, Any]) -> str:
    """One token per call, all masked, and what else was measured."""
    parts = [
        f"{about[key]:.3f} {what}"
        for key, what in (
            ("coherence", "by `entropy(block=1)`"),
            ("coherence_bisection", "by `bisection(order=1)`"),
            ("coherence_given", "by `entropy(block=1)` with half of the positions given"),
            ("coherence_task", f"on its task, `{about.get('task')}`"),
        )
        if about.get(key) is not None
    ]
    return ", ".join(parts)


def _limits(about: dict[str, Any]) -> str:
    if "tokenizer" in about:
        return "a small model: its texts are grammatical for a few words at a time"
    config = DDiTConfig.from_json(about["config"])
    small = "" if config.parameters > PAPER else SMALL
    if config.head.joint:
        small = "; its output suits tokens that depend on their neighbours (docs/frontier.md)"
    return f"knows one world at {config.length} positions{small}"
