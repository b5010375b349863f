"""What a tokenizer knows: its tokens by name, what belongs around a text, what is never drawn."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from maskwalk.errors import MaskwalkError
from maskwalk.reading import Wrong, json_value
from maskwalk.resources import quiet, read_file

SPECIAL = tuple(f"{name}_token_id" for name in ("unk", "pad", "bos", "eos", "cls", "sep"))
VOCABULARIES = "tokenizer.json, vocab.txt, or vocab.json and merges.txt"
Ends = tuple[int, ...]  # the tokens that end a text
ENDLESS = 1 << 30  # tokenizers without a limit state a huge one


def read_tokenizer(where: Path, model: Path, trusted: bool = False) -> Any:
    """The tokenizer in a directory, or a sentence that says which one to give."""
    try:
        with quiet() as transformers:
            maker = transformers.AutoTokenizer
            if _said(where).get("tokenizer_class") == "DreamTokenizer":
                maker, trusted = transformers.Qwen2Tokenizer, False  # whose code it is
            reader = maker.from_pretrained(
                where, local_files_only=True, trust_remote_code=trusted, **_case(where)
            )
    except Exception as problem:  # nobody lists what a damaged file may raise
        why = " ".join(str(problem).split())[:200]
        raise MaskwalkError(
            f"{where} brings no tokenizer that can be read ({why}). Give the one {model.name} was "
            "trained with: tokenizer=… (--tokenizer; for the public MDLM it is gpt2)."
        ) from None
    if len(reader) <= len(set(reader.all_special_ids)):
        raise MaskwalkError(
            f"The tokenizer in {where}, read as a {type(reader).__name__}, knows no tokens but its "
            f"special ones: its vocabulary ({VOCABULARIES}) is missing, or is one of another class "
            'of tokenizers (name it in tokenizer_config.json: {"tokenizer_class": "BertTokenizer"}'
            "). Or give a tokenizer that is whole: tokenizer=… (--tokenizer)."
        )
    added = _said(where).get("added_tokens_decoder")
    for token_id, token in added.items() if isinstance(added, dict) else ():
        text = token.get("content") if isinstance(token, dict) else None
        if isinstance(text, str) and str(reader.convert_tokens_to_ids(text)) != str(token_id):
            raise MaskwalkError(
                f"{where} numbers its token {text!r} {token_id}, and the tokenizer read from it "
                f"{reader.convert_tokens_to_ids(text)}: its files do not belong together."
            )
    return reader


def _case(where: Path) -> dict[str, bool]:
    """BERT's tokenizer lowers all letters unless it is told: not if its vocabulary has capitals."""
    file = where / "vocab.txt"
    if (where / "tokenizer.json").exists() or "do_lower_case" in _said(where) or not file.exists():
        return {}
    words = read_file(file).decode(errors="replace").split()
    capitals = any(not word.islower() and word.isalpha() for word in words)
    return {"do_lower_case": False} if capitals else {}


def _said(where: Path) -> dict[str, Any]:
    """What tokenizer_config.json says; empty if there is none, or none that can be read."""
    file = where / "tokenizer_config.json"
    try:
        said = json_value(read_file(file)) if file.exists() else {}
    except Wrong:
        return {}  # the reader itself will say so
    return said if isinstance(said, dict) else {}


def token_of(given: int | str, tokenizer: Any) -> int:
    """A token's id from its id or its text."""
    if isinstance(given, int):
        return given
    if given.isdecimal():
        return int(given)
    token_id = tokenizer.convert_tokens_to_ids(given)
    if token_id is None or (token_id == tokenizer.unk_token_id and given != tokenizer.unk_token):
        raise MaskwalkError(f"The tokenizer has no token {given!r}; give a token of it, or an id.")
    return int(token_id)


def around(tokenizer: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(before, after) a text: what the tokenizer puts around an empty one."""
    empty = tuple(int(i) for i in tokenizer("")["input_ids"])
    if len(empty) == 1 and empty[0] == tokenizer.eos_token_id != tokenizer.bos_token_id:
        return (), empty
    half = (len(empty) + 1) // 2
    return empty[:half], empty[half:]


def ends_of(told: int | str | Sequence[int | str] | None, tokenizer: Any, directory: Path) -> Ends:
    """The tokens that end a text: what was said, or the tokenizer's and, behind it, those that
    generation_config.json names."""
    if told is None:
        named = [tokenizer.eos_token_id, *_generation_ends(directory)]
        found = [int(i) for i in named if i is not None and int(i) < len(tokenizer)]
        return tuple(dict.fromkeys(found))
    several = [told] if isinstance(told, int | str) else list(told)
    return tuple(dict.fromkeys(token_of(one, tokenizer) for one in several))


def _generation_ends(directory: Path) -> list[int]:
    """eos_token_id of generation_config.json: none, one or several."""
    file = directory / "generation_config.json"
    try:
        about = json_value(read_file(file)) if file.exists() else {}
    except Wrong:
        return []
    named = about.get("eos_token_id") if isinstance(about, dict) else None
    several = named if isinstance(named, list) else [named]
    return [i for i in several if isinstance(i, int) and not isinstance(i, bool) and i >= 0]


def forbidden_tokens(tokenizer: Any, size: int, ends: Ends) -> set[int]:
    """Tokens never drawn: special ones but the end of text, and columns that stand for no token."""
    special = {getattr(tokenizer, name, None) for name in SPECIAL} - set(ends)
    return {int(i) for i in special if i is not None} | set(range(len(tokenizer), size))


def check_vocabulary(tokenizer: Any, size: int, source: str | Path) -> None:
    """Refuses a tokenizer with more tokens than the model has."""
    if len(tokenizer) > size:
        raise MaskwalkError(
            f"The tokenizer has {len(tokenizer)} tokens and {source} only {size}: they do not "
            "belong together. Give the tokenizer the model was trained with."
        )


def longest(config: Any, tokenizer: Any) -> int | None:
    """The most tokens a model reads, by its configuration or its tokenizer; None if unknown."""
    names = ("max_position_embeddings", "n_positions", "max_sequence_length", "model_length")
    lengths = [getattr(config, name, None) for name in names] + [tokenizer.model_max_length]
    limits = [int(n) for n in lengths if isinstance(n, int) and 0 < n < ENDLESS]
    return min(limits, default=None)


def pieces(tokenizer: Any, tokens: list[int]) -> list[str]:
    """The text each token adds, spaces in front included, for showing them side by side."""
    raw = [str(t) for t in tokenizer.convert_ids_to_tokens(tokens)]
    words = any(t.startswith("##") for t in tokenizer.get_vocab())
    if words:
        return [t[2:] if t.startswith("##") else f" {t}" for t in raw]
    if any(t.startswith("▁") for t in tokenizer.get_vocab()):
        return [t.replace("▁", " ") for t in raw]
    return [str(tokenizer.decode([token])) for token in tokens]
