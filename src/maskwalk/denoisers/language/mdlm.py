"""The public MDLM checkpoints in this project's own network: no remote code, no flash-attn.

A checkpoint is safetensors under the keys of `denoisers.weights` with `backbone.` in front. Its
shape is read off the tensors; only the number of heads is not there, unless the rotary frequencies
are (half a head's width of them): else it comes from config.json, or heads 64 wide are taken, as in
the public model. Time conditioning is off there, so the conditioning is one learned constant; the
mask is the last token unless the tokenizer has one of its own.

Source: Sahoo et al., Simple and Effective Masked Diffusion Language Models, NeurIPS 2024.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float, Float32, Int
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional as F

from maskwalk.denoisers.files import PREFIX
from maskwalk.denoisers.language.base import LogMarginals, TextDenoiser, few_at_a_time
from maskwalk.denoisers.language.checkpoint import read_config
from maskwalk.denoisers.network.ddit import hidden_states, modulations, output_map
from maskwalk.denoisers.network.weights import DDiTConfig, layout
from maskwalk.errors import MaskwalkError, one_of

FREQUENCIES = "rotary_emb.inv_freq"


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


def read_tensors(directory: Path) -> dict[str, Tensor]:
    """All tensors of the safetensors files in a directory."""
    tensors: dict[str, Tensor] = {}
    for file in sorted(directory.glob("*.safetensors")):
        try:
            tensors |= load_file(file)
        except (SafetensorError, ValueError, OverflowError, OSError) as problem:
            raise MaskwalkError(
                f"{file} is not a complete safetensors file ({problem}); download it again."
            ) from None
    return tensors


def load_mdlm(directory: str | Path, **options: Any) -> MDLM:
    """The denoiser in a directory that holds an MDLM checkpoint; options as for `MDLM`."""
    directory = Path(directory)
    named = read_tensors(directory)
    tensors = {name.removeprefix(PREFIX): value for name, value in named.items()}
    frequencies = tensors.pop(FREQUENCIES, None)
    config = shape_of(tensors, frequencies, read_config(directory), directory)
    try:
        packed = layout(config).pack({name: value[None] for name, value in tensors.items()})
    except MaskwalkError as problem:
        raise MaskwalkError(f"{directory}: {problem}") from None
    return MDLM(config, packed[0], **options)


def shape_of(
    tensors: dict[str, Tensor],
    frequencies: Tensor | None,
    described: dict[str, Any],
    source: Path,
) -> DDiTConfig:
    """The configuration these tensors have, checked against what config.json says."""
    table, first = tensors.get("vocab_embed.embedding"), tensors.get("sigma_map.mlp.0.weight")
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
    rows, hidden = table.shape
    heads = int(described.get("n_heads") or max(1, hidden // 64))
    if frequencies is not None:
        heads = hidden // (2 * len(frequencies))
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
