"""Weights straight from safetensors to where they are used, one tensor at a time.

The network is built without memory (torch's meta device), and each tensor is read onto its device,
brought to the wanted precision, and put in place: the peak is the model and one tensor, never a
second copy in main memory. Several accelerators: `device_map` says which layers go where (`auto`
asks the package accelerate). What no file carries (rotary frequencies) is computed anew, and
whatever is left without a value is an error, never memory as it was found.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from maskwalk.errors import MaskwalkError, shown
from maskwalk.resources import need

DeviceMap = str | dict[str, str | int]


def files_of(directory: Path) -> list[Path]:
    """The safetensors files of a model, every part of its index included, or a sentence; as for
    `transformers`, others beside model.safetensors are none of it."""
    index = directory / "model.safetensors.index.json"
    if not index.exists():
        single = directory / "model.safetensors"
        return [single] if single.exists() else sorted(directory.glob("*.safetensors"))
    try:
        named = sorted(set(json.loads(index.read_text())["weight_map"].values()))
        parts = [directory / str(name) for name in named]
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as problem:
        raise MaskwalkError(f"{index} cannot be read ({problem}); download it again.") from None
    for part in parts:
        if not part.exists() or part.parent != directory:
            raise MaskwalkError(
                f"{directory} lacks {part.name}, one of the {len(parts)} parts its index names; "
                "download the rest of the model."
            )
    return parts


def tensors_of(
    files: list[Path], device_of: Callable[[str], str | int | torch.device]
) -> Iterator[tuple[str, Tensor]]:
    """(name, tensor) of every tensor, each read onto its device."""
    seen: dict[str, Path] = {}
    for file in files:
        try:
            with safe_open(file, framework="pt") as names:
                places = {name: device_of(name) for name in names.keys()}  # noqa: SIM118
            _check_once(seen, places, file)
            for device in dict.fromkeys(places.values()):
                with safe_open(file, framework="pt", device=_spelled(device)) as part:
                    for name, place in places.items():
                        if place == device:
                            yield name, part.get_tensor(name)
        except MaskwalkError:
            raise
        except (SafetensorError, ValueError, OverflowError, OSError) as problem:
            raise MaskwalkError(
                f"{file} is not a complete safetensors file ({problem}); download it again."
            ) from None


def _check_once(seen: dict[str, Path], names: Iterable[str], file: Path) -> None:
    """Refuses a tensor that two files have: one of them would be taken at random."""
    for name in names:
        if name in seen:
            raise MaskwalkError(
                f"{file.parent} has {name} in {seen[name].name} and in {file.name}: two models, of "
                "which one must go."
            )
        seen[name] = file


def _spelled(device: str | int | torch.device) -> Any:
    return device if isinstance(device, int) else str(device)


def streamed(
    build: Callable[[], nn.Module],
    files: list[Path],
    source: Path,
    *,
    renamed: Callable[[str], str] = lambda name: name,
    device: str = "cpu",
    dtype: torch.dtype = torch.float32,
    device_map: DeviceMap | None = None,
) -> tuple[Any, list[str]]:
    """The network `build` makes, with the weights of these files; and names that it has no use for.

    A weight that is missing, of another shape, or of a name that two tensors have is refused.
    """
    with torch.device("meta"):
        model: Any = build()
    both_ways(model)
    wanted = model.state_dict()
    placed = _placement(model, device_map, dtype)
    done: set[str] = set()
    extra: list[str] = []

    def device_of(name: str) -> str | int | torch.device:
        return device if placed is None else _place(placed, renamed(name))

    for given, tensor in tensors_of(files, device_of):
        name = renamed(given)
        if name not in wanted:
            extra.append(given)
            continue
        if tensor.shape != wanted[name].shape or name in done:
            raise MaskwalkError(
                f"{source}: {given} has shape {tuple(tensor.shape)}, and its config.json asks for "
                f"{tuple(wanted[name].shape)}{' once' if name in done else ''}. They belong to "
                "different models."
            )
        done.add(name)
        _assign(model, name, tensor.to(dtype) if tensor.is_floating_point() else tensor)
    model.tie_weights()
    left = sorted(name for name, weight in model.state_dict().items() if weight.is_meta)
    if left:
        raise MaskwalkError(
            f"{source} lacks {left[0]} ({len(left)} weights in all), which would be left random: "
            "this is not a whole model of the kind its config.json describes."
        )
    _compute_buffers(model, device if placed is None else None, source)
    if placed is not None:
        model = need("accelerate", "devices").dispatch_model(model, device_map=placed)
    return model.eval(), extra


def both_ways(model: Any) -> None:
    """Attention to the right too: a decoder of `transformers` asks each layer for it."""
    for module in model.modules():
        if hasattr(module, "is_causal"):
            module.is_causal = False


def _assign(model: nn.Module, name: str, tensor: Tensor) -> None:
    where, _, last = name.rpartition(".")
    module = model.get_submodule(where)
    if last in module._parameters:
        module._parameters[last] = nn.Parameter(tensor, requires_grad=False)
    else:
        module._buffers[last] = tensor


def _compute_buffers(model: Any, device: str | None, source: Path) -> None:
    """Rotary tables and the like, which no file carries, made again by their own class."""
    for name, module in list(model.named_modules()):
        if any(buffer.is_meta for buffer in module.buffers(recurse=False)):
            try:
                fresh = type(module)(model.config)
            except TypeError:
                raise MaskwalkError(
                    f"{source}: {name} has tables that no file carries, and it is not known how to "
                    "make them."
                ) from None
            model.get_submodule(name.rpartition(".")[0])._modules[name.rpartition(".")[2]] = (
                fresh if device is None else fresh.to(device)
            )


def _placement(
    model: Any, device_map: DeviceMap | None, dtype: torch.dtype
) -> dict[str, str | int] | None:
    """Which module goes to which device; None: all to one."""
    if device_map is None:
        return None
    need("accelerate", "devices")
    if device_map != "auto":
        placed: dict[str, str | int] = (
            dict(device_map) if isinstance(device_map, dict) else {"": device_map}
        )
        try:
            for device in placed.values():
                torch.device(device)
        except (RuntimeError, TypeError):
            raise MaskwalkError(
                f"device_map must be 'auto', a device, or a table from modules to devices, not "
                f"{shown(device_map)}."
            ) from None
        return placed
    found: dict[str, str | int] = need("accelerate", "devices").infer_auto_device_map(
        model, dtype=dtype, no_split_module_classes=list(model._no_split_modules or ())
    )
    if "disk" in found.values():
        raise MaskwalkError(
            "The model fits neither the accelerators nor main memory; take a smaller precision "
            "(--precision bfloat16), or a machine with more memory."
        )
    return found


def _place(placed: dict[str, str | int], name: str) -> str | int:
    """The device of the longest prefix of a weight's name."""
    parts = name.split(".")
    for count in range(len(parts), -1, -1):
        prefix = ".".join(parts[:count])
        if prefix in placed:
            return placed[prefix]
    raise MaskwalkError(f"device_map says nothing of {name}; name it, or take device_map='auto'.")
