"""Other people's language models through the same samplers (extra: `maskwalk[language]`).

    model = load("bert-base-uncased")                      # or a directory; see docs/your_model.md
    print(generate(model, "entropy(block=2)", prompt="the cat").texts[0])

`Masked`, `Causal` and `load_mdlm` give denoisers for `decode`; `load` adds the tokenizer and what
belongs around a text. Nothing here is imported by the rest of the package.
"""

from maskwalk.language.causal import Causal
from maskwalk.language.generation import Generated, LanguageModel, generate
from maskwalk.language.loading import load
from maskwalk.language.masked import Masked
from maskwalk.language.mdlm import MDLM, load_mdlm
from maskwalk.language.stopping import StopAt

__all__ = [
    "MDLM",
    "Causal",
    "Generated",
    "LanguageModel",
    "Masked",
    "StopAt",
    "generate",
    "load",
    "load_mdlm",
]
