"""Language models as denoisers (extra: `maskwalk[language]`): other people's, and our own of books.

    model = load("bert-base-uncased")                      # or a directory; see docs/your_model.md

`Masked`, `Causal` and `load_mdlm` give denoisers for `decode`; `load` adds the tokenizer and what
belongs around a text, which `decoding.generation` needs.
"""

from maskwalk.denoisers.language.causal import Causal
from maskwalk.denoisers.language.loading import load
from maskwalk.denoisers.language.masked import Masked
from maskwalk.denoisers.language.mdlm import MDLM, load_mdlm
from maskwalk.denoisers.language.model import LanguageModel

__all__ = ["MDLM", "Causal", "LanguageModel", "Masked", "load", "load_mdlm"]
