"""Which arguments a foreign decoder is called with: by the names its signature has.

Code in the style of one model names the same thing in many ways; `NAMES` lists them. What a
signature does not name is not passed, and an option of the user's goes before everything.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from maskwalk.errors import MaskwalkError, shown

NAMES = {
    "steps": ("steps", "num_steps", "n_steps", "sampling_steps", "num_sampling_steps"),
    "new": ("gen_length", "max_new_tokens", "gen_len", "new_tokens"),
    "length": ("length", "seq_len", "seqlen", "sequence_length", "max_length"),
    "batch": ("batch_size", "bsz", "num_samples", "n_samples"),
    "shape": ("shape", "batch_dims", "size"),
    "block": ("block_length", "block_size"),
    "temperature": ("temperature", "temp"),
    "mask": ("mask_id", "mask_token_id", "mask_index", "mask_token"),
    "pad": ("pad_id", "pad_token_id"),
    "attention": ("attention_mask",),
    "guidance": ("cfg_scale",),
    "canvas": ("x", "xt", "tokens", "input_ids", "canvas"),
    "vocab": ("vocab_size",),
    "device": ("device",),
}
KEYWORDS = ("steps", "max_new_tokens", "temperature", "mask_token_id", "attention_mask")
MEANS = {name: meaning for meaning, names in NAMES.items() for name in names}
VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class Signature:
    """What a decoder takes after its first `taken` arguments."""

    def __init__(self, function: Callable[..., Any], taken: int, name: str) -> None:
        self.name = name
        try:
            every = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            raise MaskwalkError(f"{name} has no signature to call it by.") from None
        plain = [p for p in every if p.kind not in VARIABLE]
        some = any(p.kind == inspect.Parameter.VAR_POSITIONAL for p in every)
        if len([p for p in plain if p.kind != p.KEYWORD_ONLY]) < taken and not some:
            raise MaskwalkError(
                f"{name} takes {len(plain)} arguments; called this way it gets {taken} at least. "
                "See maskwalk audit --help for what --like expects."
            )
        self.open = any(p.kind == inspect.Parameter.VAR_KEYWORD for p in every)
        self.parameters = {p.name: p for p in plain[taken:]}

    def takes(self, meaning: str) -> bool:
        """Whether something of this meaning can be passed."""
        named = any(MEANS.get(name) == meaning for name in self.parameters)
        return named or (self.open and any(MEANS[name] == meaning for name in KEYWORDS))

    def default(self, name: str) -> Any:
        """The default of a parameter, None if it has none."""
        parameter = self.parameters.get(name)
        found = None if parameter is None else parameter.default
        return None if found is inspect.Parameter.empty else found

    def check(self, options: Mapping[str, Any]) -> None:
        """Refuses options it does not take."""
        for name in options:
            if name not in self.parameters and not self.open:
                known = ", ".join(self.parameters) or "none"
                raise MaskwalkError(f"{self.name} has no option {shown(name)}; it takes: {known}.")

    def arguments(
        self, values: Mapping[str, Any], options: Mapping[str, Any], fixed: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The named arguments of one call; `fixed` ones are the style's own."""
        result: dict[str, Any] = {}
        names = [*self.parameters, *(KEYWORDS if self.open else ())]
        for name in names:
            meaning = MEANS.get(name, "")
            said = {MEANS.get(one) for one in result}
            if name in fixed:
                result[name] = fixed[name]
            elif meaning in values and meaning not in said and values[meaning] is not None:
                result[name] = values[meaning]
        result |= options
        for name, parameter in self.parameters.items():
            if name not in result and parameter.default is inspect.Parameter.empty:
                raise MaskwalkError(
                    f"{self.name} needs {name}, and the audit does not know what that is; "
                    f"say --option {name}=…"
                )
        return result
