"""`maskwalk generate`: text from somebody's model with any sampler."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from maskwalk.cli import common
from maskwalk.cli.common import bring_in, check_device, err, out
from maskwalk.errors import MaskwalkError, seed_number, whole

if TYPE_CHECKING:
    from maskwalk.denoisers.language import LanguageModel

Model = Annotated[
    str,
    typer.Option(
        help="zoo:books_mdm (masked), zoo:books_ar (causal), a directory of `maskwalk text train`; "
        "hf:PATH (a folder, or a GGUF file), or hf:NAME on the Hugging Face hub."
    ),
]
Tokenizer = Annotated[str | None, typer.Option(help="Its tokenizer, if it brings none.")]
Template = Annotated[
    str | None, typer.Option(help="Text with gaps of so many tokens: 'The {3} sat on {5}.'")
]


def generate(
    denoiser: Model,
    sampler: Annotated[
        str | None,
        typer.Option(
            help="Default: the preset's, or confidence(block=1); if causal left_to_right."
        ),
    ] = None,
    prompt: Annotated[str, typer.Option(help="Text in front.")] = "",
    template: Template = None,
    length: Annotated[
        int | None,
        typer.Option(help="Tokens in all, prompt included; default: 32 more than it."),
    ] = None,
    count: Annotated[int, typer.Option(help="Texts.")] = 1,
    seed: common.Seed = 0,
    preset: common.Preset = "exact",
    draw: common.DrawSpec = None,
    ties: common.Ties = None,
    score_grid: Annotated[
        float | None,
        typer.Option(help="Scores are rounded to it before they are ranked; 1e-12: hardly."),
    ] = None,
    stop: Annotated[
        bool | None, typer.Option(help="Stop at end-of-text; default: unless the sampler remasks.")
    ] = None,
    chat: Annotated[bool, typer.Option(help="Wrap the prompt in the chat template.")] = False,
    tokenizer: Tokenizer = None,
    kind: Annotated[str | None, typer.Option(help="mdlm, masked or causal; guessed.")] = None,
    mask: Annotated[str | None, typer.Option(help="Id or text of the mask; guessed.")] = None,
    shifted: Annotated[
        bool | None, typer.Option(help="Logits at i speak of i + 1, as Dream's do; guessed.")
    ] = None,
    end_of_text: Annotated[str | None, typer.Option(help="Id or text of it; guessed.")] = None,
    rows: Annotated[
        int | None,
        typer.Option(help="Sequences read together \\[1; ours 8, on cuda 256]."),
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option(help="float32, float16, bfloat16 \\[float32; ours on cuda float16]."),
    ] = None,
    device_map: Annotated[
        str | None, typer.Option(help="auto: a large model over all accelerators.")
    ] = None,
    check: Annotated[
        bool, typer.Option(help="Ask the model a few questions before it is used.")
    ] = True,
    trust_remote_code: Annotated[
        bool, typer.Option("--trust-remote-code", help="Run code that comes with the model.")
    ] = False,
    device: common.Device = "cpu",
    trace: Annotated[
        bool, typer.Option("--trace", help="Show the first text's unmasking, round by round.")
    ] = False,
    as_json: common.AsJson = False,
    include: common.Include = None,
) -> None:
    """Fill text with one sampler and a model of text (needs the extra `language`); under torchrun
    every process writes its part of the texts.

    Example: maskwalk generate --denoiser zoo:books_mdm --length 64 --sampler 'bisection(order=4)'

    Example: maskwalk generate --denoiser zoo:books_mdm --draw 'draw(temperature=0.7, top_p=0.9)'

    Example: maskwalk generate --denoiser hf:bert-base-uncased --prompt 'the cat' --trace

    Example: maskwalk generate --denoiser hf:mdlm-owt --tokenizer gpt2 --sampler bisection

    Example: maskwalk generate --denoiser zoo:books_mdm --preset llada --length 64
    """
    from maskwalk.cli.unmasking import unmasking
    from maskwalk.decoding.draw import DRAWS, decoding_of, preset_sampler, read_draw
    from maskwalk.decoding.generation import generate as make
    from maskwalk.decoding.processes import rows_shared
    from maskwalk.denoisers.language import load
    from maskwalk.denoisers.language.books import is_books, load_books
    from maskwalk.samplers import SAMPLERS

    bring_in(include)
    seed_number("seed", seed), whole("count", count, 1, 10**9)
    if rows is not None:
        whole("rows", rows, 1, 65_536)
    drawn, broken = read_draw(preset, draw, ties)
    with rows_shared(check_device(device)) as group:
        device = group.device
        model: LanguageModel
        if is_books(denoiser):
            given = (tokenizer, kind, mask, shifted, end_of_text, device_map)
            if any(value is not None for value in given):
                raise MaskwalkError(
                    f"{denoiser} knows its tokenizer, kind and mask: leave those options out."
                )
            model = load_books(denoiser, rows=rows, device=device, precision=precision)
        elif denoiser.startswith("hf:"):
            model = load(
                denoiser,
                tokenizer=tokenizer,
                kind=kind,
                mask=mask,
                shifted=shifted,
                end_of_text=end_of_text,
                rows=1 if rows is None else rows,
                device=device,
                precision=precision or "float32",
                device_map=device_map,
                check=check,
                trust_remote_code=trust_remote_code,
            )
        else:
            raise MaskwalkError(
                "generate needs a model of text: zoo:books_mdm, a directory of `maskwalk text "
                f"train`, hf:PATH or hf:NAME, not {denoiser!r}; walks on graphs are `maskwalk "
                "sample`."
            )
        plain = "left_to_right" if model.causal else "confidence(block=1)"
        rule = sampler or preset_sampler(preset, plain)
        decoding = decoding_of(SAMPLERS.canonical(rule), drawn, broken)
        text: dict[str, Any] = {
            "prompt": prompt,
            "template": template,
            "length": length,
            "count": count,
        }
        text |= {"seed": seed, "ties": broken, "score_grid": score_grid}
        made = make(model, rule, **text, draw=DRAWS.build(drawn), stop=stop, chat=chat, trace=trace)
    if not group.first:
        return
    if as_json:
        print(
            json.dumps(
                _summary(denoiser, rule, text | {"draw": drawn, "decoding": decoding}, model, made)
            )
        )
        return
    if trace:
        out.print(unmasking(model, made, colour=out.color_system is not None))
        out.print()
    for number, written in enumerate(made.texts, 1):
        out.print(Text(f"{number}  " if count > 1 else "", style="dim"), Text(written), sep="")
    calls = made.calls.double().mean()
    cost = f"{calls:.4g} calls a text · {made.tokens_per_call:.2f} tokens a call"
    out.print(Text(f"\n{cost} · {made.seconds:.2f} s", style="dim"))
    out.print(Text(decoding, style="dim"), soft_wrap=True)
    for note in (*model.notes, *made.notes):
        err.print(Text(f"Note: {note}.", style="dim"))


def _summary(
    denoiser: str, sampler: str, settings: dict[str, Any], model: Any, made: Any
) -> dict[str, Any]:
    """What --json prints: the settings, the texts, and what they cost."""
    from maskwalk import __version__
    from maskwalk.samplers import SAMPLERS

    summary = {
        "denoiser": denoiser,
        "sampler": SAMPLERS.canonical(sampler),
        **settings,
        "length": made.tokens.shape[1],
        "texts": made.texts,
        "tokens": made.tokens.tolist(),
        "calls": made.calls.tolist(),
        "calls_mean": float(made.calls.double().mean()),
        "tokens_per_call": made.tokens_per_call,
        "seconds": made.seconds,
        "version": __version__,
        "notes": [*getattr(model.denoiser, "notes", ()), *model.notes, *made.notes],
    }
    if made.trace is not None:
        summary["rounds"] = made.trace.reveal_rounds().tolist()
    return summary
