"""The site: these documents as they are, and the API from the docstrings. `make docs` builds it.

The documents stay plain Markdown: their order (`PAGES`) and the list of public names stand here and
are added while Sphinx reads.
"""

import inspect
import re
from typing import Any

import maskwalk

project, author = "maskwalk", "The maskwalk authors"
project_copyright = "The maskwalk authors, Apache-2.0"
version = release = maskwalk.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "maskwalk"
html_copy_source = False
myst_heading_anchors = 4
suppress_warnings = ["myst.xref_ambiguous"]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
highlight_language = "text"

# Markdown beside the documents: a file to look at, no page.
BESIDE = re.compile(r"\[([^\]]+)\]\((\.\./[^)]+\.md)\)")
PAGES = {
    "Start": ["install", "tour", "library", "player", "concepts", "faq", "limitations", "cite"],
    "Choose": ["samplers", "atlas", "worlds", "diagnosis", "leaderboard"],
    "Extend": ["extend", "add_a_sampler", "add_a_world", "your_model", "audit"],
    "Measure": ["experiments", "training", "verify", "scale"],
    "Results": ["results", "models", "frontier", "reproduction", "language", "theory", "exactness"],
    "Reference": ["api", "design"],
}


def add(app: Any, name: str, source: list[str]) -> None:
    """Adds the order of pages to the index, and every public name to the API."""
    source[0] = BESIDE.sub(r"{download}`\1 <\2>`", source[0])
    if name == "index":
        for title, pages in PAGES.items():
            lines = [":hidden:", f":caption: {title}", "", *pages]
            source[0] += fenced("toctree", "", lines)
    if name == "api":
        for module, names in maskwalk.PUBLIC.items():
            source[0] += f"\n## {module}\n"
            for public in names:
                source[0] += fenced("eval-rst", "", directive(module, public))


def fenced(directive_name: str, argument: str, lines: list[str]) -> str:
    """A directive of MyST."""
    return "\n" + "\n".join([f"```{{{directive_name}}} {argument}".rstrip(), *lines, "```", ""])


def directive(module: str, name: str) -> list[str]:
    """What autodoc has to say of a public name."""
    thing = getattr(maskwalk, name)
    path = f"maskwalk.{module}.{name}"
    if inspect.isclass(thing):
        return [f".. autoclass:: {path}", "   :members:"]
    return [f".. {'autofunction' if callable(thing) else 'autodata'}:: {path}"] + (
        [] if callable(thing) else ["   :no-value:"]
    )


def to_rst(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Docstrings here are Markdown: code in single backticks, indented blocks as they stand."""
    if what == "data":  # a table: what its class says would be said of each
        kind = getattr(thing, "kind", None)
        lines[:] = [f"The table of {kind}s." if kind else "A table by name.", ""]
        return
    out: list[str] = []
    for line in lines:
        block = line.startswith("    ") and (not out or not out[-1].strip() or is_block(out[-1]))
        if block and not (out and is_block(last_text(out))):
            out += ["::", ""]
        out.append(line if block else escaped(line))
    lines[:] = [*out, ""]


def is_block(line: str) -> bool:
    """Whether a line belongs to an indented block."""
    return line.startswith("    ")


def last_text(lines: list[str]) -> str:
    """The last line that is not empty."""
    return next((line for line in reversed(lines) if line.strip()), "")


def escaped(line: str) -> str:
    """Markdown's code as RST's; what RST would read as markup, as text."""
    parts = re.split(r"(`[^`]+`)", line)
    return "".join(
        f"``{part[1:-1]}``" if part.startswith("`") else re.sub(r"([*|_])", r"\\\1", part)
        for part in parts
    )


def setup(app: Any) -> None:
    """What Sphinx is told."""
    app.connect("source-read", add)
    app.connect("autodoc-process-docstring", to_rst)
