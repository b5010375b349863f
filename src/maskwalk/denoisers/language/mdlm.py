"""The public MDLM checkpoints in this project's own network: no remote code, no flash-attn.

A checkpoint is safetensors under the keys of `denoisers.weights`: with `backbone.` in front (the
hub's layout, and Lightning's after `maskwalk convert`), or without (`DIT.save_pretrained`, whose
config.json has the settings one level down). Its shape is read off the tensors; only the number of
heads is not there, unless the rotary frequencies are (half a head's width of them): else
config.json must say it. The mask is the last token unless the tokenizer has one of its own.

Time conditioning is off in the public models, so the conditioning is one learned constant, and a
model with it is refused. Where config.json does not say, the weights do: without it the sines of
the time are always 0, their columns of the first map are never trained and stay within the ±1/16
they were drawn from.

Source: Sahoo et al., Simple and Effective Masked Diffusion Language Models, arXiv 2406.07524;
kuleshov-group/mdlm c112c52 was read (models/dit.py, diffusion.py).
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float, Float32, Int
from torch import Tensor
from torch.nn import functional as F

from maskwalk.denoisers.files import PREFIX
from maskwalk.denoisers.language.base import LogMarginals, TextDenoiser, few_at_a_time
from maskwalk.denoisers.language.checkpoint import MDLM_NAMES, read_config
from maskwalk.denoisers.language.streaming import files_of, tensors_of
from maskwalk.denoisers.network.ddit import hidden_states, modulations, output_map
from maskwalk.denoisers.network.weights import DDiTConfig, layout
from maskwalk.errors import MaskwalkError, one_of

FREQUENCIES = "rotary_emb.inv_freq"
OUTER = ("time_conditioning", "parameterization", "backbone")
INNER = {"hidden_size": "hidden_dim", "length": "model_length"}  # hydra's name: the hub's name


class MDLM(TextDenoiser):
    """The network of an MDLM checkpoint as a denoiser over its vocabulary."""

    def __init__(
        self,
        config: DDiTConfig,
        weights: Float[Tensor, " size"],
        *,
        mask_id: int | None = None,
        rows: int = 1,
        forbidden: Iterable[int] = (),
        device: str | torch.device = "cpu",
        precision: str = "float32",
    ) -> None:
        # `config.vocab_size` leaves the last row to the mask; with a mask inside, all rows count.
        inside = mask_id is not None and mask_id != config.mask_id
        super().__init__(
            config.rows if inside else config.vocab_size,
            config.mask_id if mask_id is None else mask_id,
            rows,
            forbidden,
        )
        if self.mask_id >= config.rows:
            raise MaskwalkError(
                f"The mask {mask_id} is not a token of this checkpoint, which reads 0.."
                f"{config.rows - 1}."
            )
        one_of("precision", precision, ("float32", "float16", "bfloat16"))
        self.config, self.device = config, torch.device(device)
        shape = layout(config)
        matrices, singles = shape.parts(weights[None].to(self.device, torch.float32))
        self.weights = shape.grouped(matrices.to(getattr(torch, precision)), singles)
        with torch.no_grad():
            self._modulation = modulations(config, self.weights)
            # Without bias, which the answer adds; columns by eights keep rows aligned for kernels.
            last = output_map(config, self.weights)[0, : self.vocab_size]
            extra = 0 if self.device.type == "cpu" else -len(last) % 8
            self._map = (F.pad(last, (0, 0, 0, extra)) if extra else last).t()
            self.bias = self.weights["output_layer.linear.bias"][0, : self.vocab_size].float()

    def __repr__(self) -> str:
        return f"MDLM({self.config}, mask_id={self.mask_id}, rows={self.rows})"

    def fill(
        self,
        answer: LogMarginals,
        tokens: Int[Tensor, "batch length"],
        at: Bool[Tensor, "batch length"],
    ) -> None:
        """Hidden states of all positions, then the output map at the places asked for."""
        if tokens.device.type != self.device.type:
            raise MaskwalkError(
                f"The tokens are on {tokens.device} and the network on {self.device}; load it with "
                f"device='{tokens.device.type}'."
            )
        angles = self.config.angles(tokens.shape[1], self.device)
        states = []
        for given, group in few_at_a_time(tokens, at, self.rows):
            hidden = hidden_states(
                self.config, self.weights, given[None], angles, self._modulation
            )[0]
            states.append(hidden[: at[group].numel()][at[group].flatten()])
        answer.append_mapped(torch.cat(states), self._output)

    def _output(self, hidden: Float[Tensor, "places hidden"]) -> Float32[Tensor, "places tokens"]:
        if self._map.dtype == torch.float32:
            return hidden @ self._map
        # Narrow operands, but logits in float32: the product accumulates in it anyway.
        return torch.mm(hidden, self._map, out_dtype=torch.float32)


def load_mdlm(directory: str | Path, *, device: str | torch.device = "cpu", **options: Any) -> MDLM:
    """The denoiser in a directory that holds an MDLM checkpoint; options as for `MDLM`.

    Weights are read straight onto the device.
    """
    directory = Path(directory)
    named = tensors_of(files_of(directory), lambda _: device)
    tensors = {name.removeprefix(PREFIX): value for name, value in named}
    frequencies = tensors.pop(FREQUENCIES, None)
    config = shape_of(tensors, frequencies, settings_of(read_config(directory)), directory)
    try:
        packed = layout(config).pack({name: value[None] for name, value in tensors.items()})
    except MaskwalkError as problem:
        raise MaskwalkError(f"{directory}: {problem}") from None
    return MDLM(config, packed[0], device=device, **options)


def settings_of(described: Any) -> dict[str, Any]:
    """The hub's settings; those of the public trainer lie under `config` and `model`."""
    flat = dict(described) if isinstance(described, dict) else {}
    inner = flat.get("config")
    if isinstance(inner, dict):
        model = inner.get("model")
        found = dict(model) if isinstance(model, dict) else {}
        found = {INNER.get(name, name): value for name, value in found.items()}
        flat |= found | {name: inner[name] for name in OUTER if name in inner}
    return flat


def shape_of(
    tensors: dict[str, Tensor],
    frequencies: Tensor | None,
    described: dict[str, Any],
    source: Path,
) -> DDiTConfig:
    """The configuration these tensors have, checked against what config.json says."""
    table, first = (tensors.get(name) for name in MDLM_NAMES)
    blocks = {name.split(".")[1] for name in tensors if name.startswith("blocks.")}
    if table is None or first is None or not blocks:
        raise MaskwalkError(
            f"{source} is not an MDLM checkpoint: it has none of vocab_embed.embedding, "
            "sigma_map.mlp.0.weight or blocks.*; other models load as `masked` or `causal`."
        )
    if described.get("time_conditioning"):
        raise MaskwalkError(
            f"{source} was trained with time conditioning; only checkpoints without are read."
        )
    sines = first[:, first.shape[1] // 2 :].float().abs()
    if described.get("time_conditioning") is None and float(sines.max()) > first.shape[1] ** -0.5:
        raise MaskwalkError(
            f"{source} seems to be trained with time conditioning (the weights of its time are "
            "trained), and only checkpoints without are read. If it was trained without, write "
            '"time_conditioning": false in its config.json.'
        )
    kind = described.get("parameterization") or "subs"
    if kind != "subs":
        raise MaskwalkError(
            f"{source} was trained with the parameterization {kind!r}, whose logits are no "
            "marginals; only 'subs', MDLM's own, is read."
        )
    rows, hidden = table.shape
    heads = hidden // (2 * len(frequencies)) if frequencies is not None else 0
    heads = heads or int(described.get("n_heads") or 0)
    if not heads:
        raise MaskwalkError(
            f"Nothing says how many heads {source} has: neither its weights ({FREQUENCIES}) nor a "
            'config.json. Write {"n_heads": …} in a config.json beside them (mdlm-owt has 12).'
        )
    sizes = {"vocab_size": rows, "hidden_dim": hidden, "n_blocks": len(blocks), "n_heads": heads}
    for name, value in sizes.items():
        if described.get(name, value) != value:
            raise MaskwalkError(
                f"{source}: config.json says {name} = {described[name]}, the weights have {value}. "
                "They belong to different models."
            )
    return DDiTConfig(
        vocab_size=rows - 1,
        length=int(described.get("model_length") or 1024),
        hidden=hidden,
        cond=first.shape[0],
        blocks=len(blocks),
        heads=heads,
    )
