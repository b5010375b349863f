"""A conversation as a chat template wraps it, rendered where it can do no harm.

A conversation is a list of messages, {"role": "system" | "user" | "assistant" | …, "content": …}.

A template is a program that comes with a tokenizer. It runs in the sandbox of `transformers`, which
lets it reach nothing, and in a process of its own with a limit on time and memory, which ends a
loop that would not: a sandbox alone does not.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from maskwalk.errors import MaskwalkError, shown

SECONDS = 2  # of computing
WAIT = 120  # seconds in all, on a machine that is busy
MOST = 1_000_000  # characters of a prompt
RENDER = """
import json, sys
given = json.load(sys.stdin)
from transformers.utils.chat_template_utils import render_jinja_template
try:
    import resource, time
    spent = int(time.process_time()) + given["seconds"]
    resource.setrlimit(resource.RLIMIT_CPU, (spent, spent + 1))
    resource.setrlimit(resource.RLIMIT_DATA, (2**31, 2**31))
except (ImportError, ValueError, OSError):
    pass  # not on this system: the caller still waits for so long and no longer
try:
    texts = render_jinja_template(
        conversations=given["conversations"], chat_template=given["template"],
        add_generation_prompt=True, **given["special"],
    )[0]
    endless = {"problem": "it writes no end of text"}
    answer = {"texts": texts} if max(map(len, texts)) <= given["most"] else endless
except (Exception, MemoryError) as problem:
    answer = {"problem": f"{type(problem).__name__}: {problem}"[:200]}
sys.stdout.write(json.dumps(answer))
"""


Messages = Sequence[dict[str, str]]


def conversation(prompt: str | Messages, system: str | None = None) -> list[dict[str, str]]:
    """The messages of a chat: a prompt is one of the user's; `system` comes before all."""
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
    for message in messages:
        names = set(message) if isinstance(message, dict) else set()
        if not ({"role", "content"} <= names and all(isinstance(x, str) for x in message.values())):
            raise MaskwalkError(
                'A message has a role and a content, {"role": "user", "content": "…"}, not '
                f"{shown(message)}."
            )
    if not messages:
        raise MaskwalkError("A conversation needs at least one message.")
    if system is not None and messages[0]["role"] == "system":
        raise MaskwalkError("The conversation has a system message of its own: leave system out.")
    return messages if system is None else [{"role": "system", "content": system}, *messages]


def wrapped(tokenizer: Any, prompt: str | Messages, system: str | None = None) -> str:
    """A prompt or several messages in the tokenizer's chat template, ready for an answer."""
    return wrapped_all(tokenizer, [prompt], system)[0]


def wrapped_all(
    tokenizer: Any, prompts: Sequence[str | Messages], system: str | None = None
) -> list[str]:
    """Many of them, in one process."""
    template = getattr(tokenizer, "chat_template", None)
    if not template:
        raise MaskwalkError("This tokenizer has no chat template; leave chat out.")
    if isinstance(template, dict):
        template = template.get("default")
    if not isinstance(template, str):
        raise MaskwalkError("The chat template of this tokenizer is not a text; leave chat out.")
    special = {k: v for k, v in tokenizer.special_tokens_map.items() if isinstance(v, str)}
    answer = _rendered(
        {
            "conversations": [conversation(prompt, system) for prompt in prompts],
            "template": template,
            "special": special,
            "seconds": SECONDS + len(prompts) // 100,
            "most": MOST,
        }
    )
    if "texts" not in answer:
        raise MaskwalkError(
            f"The chat template of this tokenizer cannot be used: {answer['problem']}. Mend it "
            "(chat_template.jinja or tokenizer_config.json of the model), or leave chat out."
        )
    return [str(text) for text in answer["texts"]]


def _rendered(given: dict[str, Any]) -> dict[str, Any]:
    command, data = [sys.executable, "-P", "-c", RENDER], json.dumps(given).encode()
    try:
        done = subprocess.run(command, input=data, capture_output=True, timeout=WAIT, check=False)
    except subprocess.TimeoutExpired:
        return {"problem": f"it did not end within {WAIT} seconds"}
    if done.returncode < 0:  # by a limit of its own
        return {"problem": f"it did not end within {SECONDS} seconds of computing"}
    if done.returncode:
        return {"problem": done.stderr.decode(errors="replace").strip().split("\n")[-1]}
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
