"""A text while it is being filled: in a terminal all of it, with a blank for every masked token; in
a pipe what is final, as far as nothing is masked before it."""

from types import TracebackType

from rich.live import Live
from rich.text import Text
from torch import Tensor

from maskwalk.cli.common import out
from maskwalk.cli.unmasking import shown_pieces
from maskwalk.decoding.answers import answer_of, turn_ends
from maskwalk.denoisers.language.model import LanguageModel


class Stream:
    """Told of every round of one text; used as a context around the decoding."""

    def __init__(
        self, model: LanguageModel, strings: tuple[str, ...], whole: bool, chat: bool
    ) -> None:
        self.model, self.strings, self.whole, self.chat = model, strings, whole, chat
        self._ends = model.ends
        self.written = ""
        self._live = Live(console=out, transient=True) if out.is_terminal else None
        self._given: Tensor | None = None

    def __enter__(self) -> "Stream":
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        lines: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, rows: Tensor, tokens: Tensor) -> None:
        """What the text is now: at first, and after every round."""
        if self._given is None:
            self._given = tokens[0] != self.model.mask
            self._ends += turn_ends(self.model, tokens[0]) if self.chat else ()
        if self._live is not None:
            self._live.update(Text("".join(shown_pieces(self.model, tokens[0].tolist()))))
            return
        masked = (tokens[0] == self.model.mask).nonzero()[:, 0]
        if len(masked):  # the last round is told by `end`
            self._write(tokens[0, : int(masked[0])])

    def end(self, text: str) -> bool:
        """What is left of the final text; whether it was written here."""
        if self._live is not None:
            return False
        if not text.startswith(self.written):  # tokens were taken back
            self._put("\n" + text)
        else:
            self._put(text[len(self.written) :])
        self._put("\n")
        return True

    def _write(self, tokens: Tensor) -> None:
        assert self._given is not None
        given = self._given[: len(tokens)]
        now = answer_of(self.model, tokens, given, self._ends, self.strings)
        text = (now.text if self.whole else now.answer).rstrip("�")
        for string in self.strings:  # half of a stop string may become a whole one
            half = next((n for n in range(len(string) - 1, 0, -1) if text.endswith(string[:n])), 0)
            text = text[: len(text) - half]
        if text.startswith(self.written):
            self._put(text[len(self.written) :])
            self.written = text

    def _put(self, text: str) -> None:
        if text:
            out.file.write(text)
            out.file.flush()
