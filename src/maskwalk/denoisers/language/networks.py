"""A checkpoint's network: a class of `transformers` with its weights, and what is odd of them."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from maskwalk.denoisers.language.checkpoint import Checkpoint, read_config
from maskwalk.denoisers.language.native import native_config
from maskwalk.denoisers.language.streaming import DeviceMap, files_of, streamed
from maskwalk.errors import MaskwalkError, memory_ran_out
from maskwalk.resources import need, quiet


def native_network(
    directory: Path,
    known: Checkpoint,
    device: str,
    precision: str,
    device_map: DeviceMap | None,
    trusted: bool,
) -> tuple[Any, tuple[str, ...]]:
    """A published layout in a class of `transformers`; its own code is not run, trusted or not."""
    native = known.native
    assert native is not None
    with quiet() as transformers:
        config = native_config(native, read_config(directory), directory, transformers)
        model, extra = streamed(
            lambda: getattr(transformers, f"{native.family}ForCausalLM")(config),
            files_of(directory),
            directory,
            renamed=native.renamed,
            device=device,
            dtype=getattr(torch, precision),
            device_map=device_map,
        )
    return model, _unused(extra)


def _unused(extra: list[str]) -> tuple[str, ...]:
    if not extra:
        return ()
    return (f"{len(extra)} weights of the file are not used, such as {sorted(extra)[0]}",)


def network_of(
    directory: Path,
    known: Checkpoint,
    device: str,
    precision: str,
    device_map: DeviceMap | None,
    trusted: bool,
) -> tuple[Any, tuple[str, ...]]:
    """The model by `transformers`, whole, and what is odd about its file."""
    if known.remote and not trusted:
        raise MaskwalkError(
            f"The network of {directory} is Python code that comes with it. Read it, then allow it "
            "with trust_remote_code=True (--trust-remote-code); or load the model yourself and "
            "wrap it: maskwalk.Masked(model, mask_id=…)."
        )
    if device_map is not None:
        need("accelerate", "devices")
    elif find_spec("accelerate"):  # straight to the device; without it through main memory
        device_map = {"": device}
    options: dict[str, Any] = {} if device_map is None else {"device_map": device_map}
    try:
        with quiet() as transformers:
            model, about = getattr(transformers, known.automatic).from_pretrained(
                directory,
                dtype=getattr(torch, precision),
                use_safetensors=True,
                local_files_only=True,
                trust_remote_code=trusted,
                output_loading_info=True,
                **options,
            )
    except Exception as problem:  # nobody lists what a damaged or foreign checkpoint may raise
        if memory_ran_out(problem):
            raise
        why = " ".join(str(problem).split())[:300]
        raise MaskwalkError(
            f"{directory} cannot be loaded as a {known.kind} model: {why} Check that config.json "
            "and weights belong together, or say what it is: kind=… (--kind)."
        ) from None
    missing = sorted(about["missing_keys"])
    if missing:
        raise MaskwalkError(
            f"{directory} lacks {missing[0]} ({len(missing)} weights in all), which would be left "
            "random: this is not a whole model of the kind its config.json describes."
        )
    notes = _unused(list(about["unexpected_keys"]))
    return (model.to(device) if device_map is None else model), notes
