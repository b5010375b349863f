"""`maskwalk generate`: text from somebody's model with any sampler."""

from typing import Annotated, Any

import typer

from maskwalk.cli import common, complete
from maskwalk.cli.common import bring_in, check_device, out
from maskwalk.cli.waiting import positions_shown
from maskwalk.errors import MaskwalkError, seed_number, whole

Model = Annotated[
    str,
    typer.Option(
        help="zoo:books_mdm (masked), zoo:books_ar (causal), a directory of `maskwalk text train`; "
        "hf:PATH (a folder, or a GGUF file), hf:NAME on the Hugging Face hub, or FILE.py:function "
        "that gives a maskwalk.LanguageModel."
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
            help="Default: the preset's, or confidence(block=1); if causal left_to_right.",
            autocompletion=complete.samplers,
        ),
    ] = None,
    prompt: Annotated[str, typer.Option(help="Text in front.")] = "",
    prompt_file: Annotated[
        str | None,
        typer.Option(help="Prompts, one per line; .jsonl: texts or messages of a chat, in JSON."),
    ] = None,
    template: Template = None,
    length: Annotated[
        int | None,
        typer.Option(help="Tokens in all, prompt included; default: 32 more than it."),
    ] = None,
    new_tokens: Annotated[
        int | None, typer.Option(help="Tokens behind the prompt, in place of --length.")
    ] = None,
    count: Annotated[int, typer.Option(help="Texts, of every prompt.")] = 1,
    seed: common.Seed = 0,
    preset: common.Preset = "exact",
    draw: common.DrawSpec = None,
    ties: common.Ties = None,
    score_grid: Annotated[
        float | None,
        typer.Option(help="Scores are rounded to it before they are ranked; 1e-12: hardly."),
    ] = None,
    stop: Annotated[
        bool | None,
        typer.Option(
            help="Stop at end-of-text; default: unless the sampler remasks, or the preset goes on."
        ),
    ] = None,
    stop_string: Annotated[
        list[str] | None, typer.Option(help="The text ends before it; may be said several times.")
    ] = None,
    special: Annotated[
        bool | None,
        typer.Option(help="Draw special tokens too, but the mask; default: as the preset's code."),
    ] = None,
    guidance: Annotated[
        float, typer.Option(help="Classifier-free guidance: u + (s + 1)(c - u); two calls each.")
    ] = 0.0,
    cache: Annotated[
        str | None,
        typer.Option(
            help="prefix or dual: keys and values kept within a block. Changes the result; what it "
            "saves depends on model and machine (benchmarks/RESULTS.md)."
        ),
    ] = None,
    chat: Annotated[bool, typer.Option(help="Wrap the prompt in the chat template.")] = False,
    system: Annotated[
        str | None, typer.Option(help="The message before the prompt of a chat.")
    ] = None,
    answer_only: Annotated[
        bool, typer.Option("--answer-only", help="Print what stands behind the prompt.")
    ] = False,
    stream: Annotated[
        bool, typer.Option("--stream", help="Show the text while it is being filled.")
    ] = False,
    tokenizer: Tokenizer = None,
    kind: Annotated[str | None, typer.Option(help="mdlm, masked or causal; guessed.")] = None,
    mask: Annotated[str | None, typer.Option(help="Id or text of the mask; guessed.")] = None,
    shifted: Annotated[
        bool | None, typer.Option(help="Logits at i speak of i + 1, as Dream's do; guessed.")
    ] = None,
    end_of_text: Annotated[
        list[str] | None, typer.Option(help="Id or text of it; several times: several; guessed.")
    ] = None,
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
    """Fill text with one sampler and a model of text (needs the extra `language`).

    Under torchrun every process writes its part of the texts.

    Example: maskwalk generate --denoiser zoo:books_mdm --length 64 --sampler 'bisection(order=4)'

    Example: maskwalk generate --denoiser zoo:books_mdm --draw 'draw(temperature=0.7, top_p=0.9)'

    Example: maskwalk generate --denoiser hf:bert-base-uncased --prompt 'the cat' --trace

    Example: maskwalk generate --denoiser hf:mdlm-owt --tokenizer gpt2 --sampler bisection

    Example: maskwalk generate --denoiser zoo:books_mdm --preset llada --length 64

    Example: maskwalk generate --denoiser hf:GSAI-ML/LLaDA-8B-Instruct --preset llada --chat
    --prompt 'What is a graph?' --new-tokens 128 --answer-only --stream
    """
    from maskwalk.cli.generated import print_json, print_texts
    from maskwalk.cli.streaming import Stream
    from maskwalk.cli.unmasking import unmasking
    from maskwalk.decoding.draw import DRAWS, decoding_of, preset_sampler, read_draw
    from maskwalk.decoding.generation import generate as make
    from maskwalk.decoding.presets import PRESETS, around, around_line
    from maskwalk.decoding.processes import rows_shared
    from maskwalk.denoisers.language.source import is_text_model, text_model
    from maskwalk.samplers import SAMPLERS

    bring_in(include)
    seed_number("seed", seed), whole("count", count, 1, 10**9)
    if rows is not None:
        whole("rows", rows, 1, 65_536)
    drawn, broken = read_draw(preset, draw, ties)
    with rows_shared(check_device(device)) as group:
        if not is_text_model(denoiser):
            raise MaskwalkError(
                "generate needs a model of text: zoo:books_mdm, a directory of `maskwalk text "
                "train`, hf:PATH, hf:NAME or FILE.py:function, not "
                f"{denoiser!r}; walks on graphs are `maskwalk sample`."
            )
        options = {
            "tokenizer": tokenizer,
            "kind": kind,
            "mask": mask,
            "shifted": shifted,
            "end_of_text": end_of_text or None,
            "rows": rows,
            "precision": precision,
            "device_map": device_map,
            "check": None if check else False,
            "trust_remote_code": trust_remote_code or None,
        }
        told = {name: value for name, value in options.items() if value is not None}
        model = text_model(denoiser, device=group.device, options=told)
        plain = "left_to_right" if model.causal else "confidence(block=1)"
        rule = sampler or preset_sampler(preset, plain)
        decoding = decoding_of(SAMPLERS.canonical(rule), drawn, broken)
        prompts = _prompts(prompt, prompt_file, template)
        if stream and (count > 1 or prompt_file is not None or trace or as_json):
            raise MaskwalkError(
                "--stream shows one text: without --count, --trace, --json or files."
            )
        text: dict[str, Any] = {
            "prompt": prompts,
            "template": template,
            "length": length,
            "new_tokens": new_tokens,
            "count": count,
            "seed": seed,
            "ties": broken,
            "score_grid": score_grid,
            "stop": stop,
            "stop_strings": tuple(stop_string or ()),
            "special": special,
            "chat": chat,
            "system": system,
            "guidance": guidance,
            "cache": cache,
        }
        named = preset if preset in PRESETS else None
        said = {"score_grid": score_grid, "stop": stop, "special": special}
        said = {name: value for name, value in said.items() if value is not None}
        decoding += around_line(**around(preset) | said, guidance=guidance, cache=cache)
        shown = (text["stop_strings"], not answer_only, chat)
        shows = Stream(model, *shown) if stream else None
        with shows or positions_shown(group.first):
            made = make(
                model,
                rule,
                **text,
                preset=named,
                draw=DRAWS.build(drawn),
                trace=trace,
                on_round=shows,
            )
    if not group.first:
        return
    if as_json:
        settings = text | {"preset": named, "draw": drawn, "decoding": decoding}
        print_json(denoiser, SAMPLERS.canonical(rule), settings, model, made)
        return
    if trace:
        out.print(unmasking(model, made, colour=out.color_system is not None))
        out.print()
    texts = made.answers if answer_only else made.texts
    written = shows is not None and shows.end(texts[0])
    print_texts([] if written else texts, decoding, model, made)


def _prompts(prompt: str, prompt_file: str | None, template: str | None) -> Any:
    """The prompt, or those of a file."""
    if prompt_file is None:
        return prompt
    if prompt or template is not None:
        raise MaskwalkError("Give one of --prompt, --prompt-file and --template.")
    from maskwalk.worlds.text.prompt_files import read_prompts

    return read_prompts(prompt_file)
