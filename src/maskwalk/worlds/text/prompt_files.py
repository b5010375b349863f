"""Prompts in a file: one per line.

    prompts.txt      every line that is not empty is a prompt, as it stands
    prompts.jsonl    every line is JSON: a text (which may hold line breaks), {"prompt": …},
                     {"messages": [{"role": …, "content": …}, …]} or a list of messages

A line of messages is a chat of several turns, wrapped as the tokenizer's chat template says.
"""

from pathlib import Path
from typing import Any

from maskwalk.errors import MaskwalkError, shown
from maskwalk.reading import Wrong, json_value
from maskwalk.resources import read_file
from maskwalk.worlds.text.chat import Messages, conversation

MOST = 100_000  # prompts of a file


def read_prompts(path: str | Path) -> list[str | Messages]:
    """The prompts of a file, in its order."""
    file = Path(path)
    if not file.is_file():
        raise MaskwalkError(f"There is no file of prompts {shown(str(path))}.")
    try:
        lines = read_file(file).decode("utf-8").splitlines()
    except UnicodeDecodeError as problem:
        raise MaskwalkError(f"{file} is no text in UTF-8 (byte {problem.start}).") from None
    numbered = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not numbered:
        raise MaskwalkError(f"{file} holds no prompt: every line of it is empty.")
    if len(numbered) > MOST:
        raise MaskwalkError(f"{file} has {len(numbered):,} prompts; at most {MOST:,} are read.")
    if file.suffix not in (".jsonl", ".json"):
        return [line for _, line in numbered]
    return [_prompt(line, f"{file}, line {number}") for number, line in numbered]


def _prompt(line: str, where: str) -> str | Messages:
    try:
        value: Any = json_value(line.encode())
    except Wrong as wrong:
        raise MaskwalkError(f"{where}: {wrong.told()}; every line is a prompt in JSON.") from None
    if isinstance(value, dict):
        value = value.get("messages", value.get("prompt"))
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        try:
            return conversation(value)
        except MaskwalkError as problem:
            raise MaskwalkError(f"{where}: {problem}") from None
    raise MaskwalkError(
        f'{where} is no prompt: a text, {{"prompt": …}} or {{"messages": […]}}, not {shown(line)}.'
    )
