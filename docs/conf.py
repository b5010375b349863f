"""The site: these documents as they are, and the API from the docstrings. `make docs` builds it.

The documents stay plain Markdown. What only a site has is added while Sphinx reads: the order of
the pages (`PAGES`), the public names (`API`), the notebooks with their outputs, the changelog.
"""

import inspect
import json
import re
import shutil
from pathlib import Path
from typing import Any

import maskwalk

ROOT = Path(__file__).resolve().parent.parent
project, author = "maskwalk", "The maskwalk authors"
project_copyright = "The maskwalk authors, Apache-2.0"
version = release = maskwalk.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "maskwalk"
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["site.css"]
myst_heading_anchors = 4
suppress_warnings = ["myst.xref_ambiguous"]
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
python_maximum_signature_line_length = 80
highlight_language = "text"

# Markdown beside the documents is a file to download; a page beside them opens in the browser.
BESIDE = re.compile(r"\[([^\]]+)\]\((\.\./[^)#]+\.md)(?:#[^)]*)?\)")
COMMAND = re.compile(r"^(maskwalk|pip|make|python|pytest|torchrun) ", re.M)
COLUMN = 96  # characters of a command that fit the column of text
COMMENT = re.compile(r"^(\S.*\S)\s{2,}# (.*)$")
OPENED = re.compile(r"\[([^\]]+)\]\(\.\./([^)#]+\.html)(#[^)]*)?\)")
# A picture that leads to a page beside the documents; of it there is a dark one, too.
PICTURE = re.compile(r"\[!\[([^\]]+)\]\((\S+)\.png\)\]\(\.\./([^)]+\.html)\)")
NOTEBOOKS = {
    "notebook_which_sampler": "notebooks/which_sampler.ipynb",
    "notebook_your_sampler": "notebooks/your_sampler.ipynb",
}
PAGES = {
    "Start": ["install", "concepts", "tour", "faq"],
    "Tutorials": ["first_ten_minutes", *NOTEBOOKS],
    "How to": [
        *("which_sampler", "player", "library", "add_a_sampler", "leaderboard", "diagnosis"),
        *("your_model", "audit", "add_a_world", "extend", "training", "experiments", "scale"),
        "verify",
    ],
    "Results": ["results", "atlas", "worlds", "language", "frontier", "reproduction"],
    "Theory": ["theory", "exactness"],
    "Reference": ["samplers", "models", "api", "design", "limitations", "cite", "changelog"],
}
API = {
    "Run": ["run", "Result", "Results", "as_sampler", "as_denoiser", "as_world"],
    "Decode": ["decode", "Decoded", "Trace", "generate", "Generated", "StopAt"],
    "Samplers": ["SAMPLERS", "Sampler", "UnmaskingPolicy", "View", "Canvas", "RoundStreams"],
    "Draws and presets": ["DRAWS", "Draw", "PRESETS"],
    "Denoisers": ["Denoiser", "DENOISERS", "from_pretrained", "save_pretrained", "oracle_for"],
    "Language models": [
        *("load", "load_mdlm", "load_books", "LanguageModel", "Masked", "Causal", "STAND_INS"),
    ],
    "Worlds, graphs and tasks": [
        *("WORLDS", "World", "Partition", "GRAPHS", "Graph", "WALKS", "WalkLaw"),
        *("TASKS", "Prompts"),
    ],
    "Metrics": ["METRICS", "Metric", "Sample", "Estimate"],
    "Exact analysis": [
        *("sampler_law", "total_variation", "replay", "Replayed", "diagnose", "best_plans"),
        *("exact_sequences", "information_curve", "optimal_sizes"),
    ],
    "Verdicts and checks": [
        *("evaluate", "Evaluation", "Scene", "broken_checks", "broken_denoiser", "broken_world"),
        *("audit", "Audit", "OracleModel"),
    ],
    "Records, random numbers, errors": [
        *("Record", "read_records", "Streams", "Purpose", "MaskwalkError"),
    ],
}


def add(app: Any, name: str, source: list[str]) -> None:
    """Adds to a page what only the site has."""
    source[0] = BESIDE.sub(r"{download}`\1 <\2>`", source[0])
    source[0] = PICTURE.sub(by_theme, source[0])
    source[0] = OPENED.sub(r'<a class="reference external" href="\2\3">\1</a>', source[0])
    if name == "index":
        for title, pages in PAGES.items():
            lines = [":hidden:", f":caption: {title}", "", *pages]
            source[0] += fenced("toctree", "", lines)
    if name == "api":
        for title, names in API.items():
            source[0] += f"\n## {title}\n"
            for public in names:
                source[0] += fenced("eval-rst", "", directive(public))
    if name in NOTEBOOKS:
        source[0] += notebook(json.loads((ROOT / NOTEBOOKS[name]).read_text("utf-8")))
    if name == "changelog":
        changes = (ROOT / "CHANGELOG.md").read_text("utf-8").partition("\n")[2]
        source[0] += changes.replace("](docs/", "](")


def by_theme(found: re.Match[str]) -> str:
    """A picture for a light page and one for a dark page, each a link."""
    words, stem, page = found.groups()
    about = [f":alt: {words}", f":target: {page}"]
    light = fenced("image", f"{stem}.png", [":class: only-light", *about])
    return light + fenced("image", f"{stem}_dark.png", [":class: only-dark", *about])


def fenced(directive_name: str, argument: str, lines: list[str]) -> str:
    """A directive of MyST."""
    return "\n" + "\n".join([f"```{{{directive_name}}} {argument}".rstrip(), *lines, "```", ""])


def directive(name: str) -> list[str]:
    """The autodoc directive of a public name."""
    thing = getattr(maskwalk, name)
    path = f"maskwalk.{name}"
    if inspect.isclass(thing):
        return [f".. autoclass:: {path}", "   :members:"]
    if callable(thing):
        return [f".. autofunction:: {path}"]
    return [f".. autodata:: {path}", "   :no-value:"]


def notebook(content: dict[str, Any]) -> str:
    """The cells of a notebook and their outputs, as Markdown; the page has the title already."""
    out: list[str] = []
    for cell in content["cells"]:
        text = "".join(cell["source"]).strip()
        if cell["cell_type"] == "markdown":
            out.append(re.sub(r"\A# .*\n?", "", text))
        elif cell["cell_type"] == "code" and text:
            out.append(f"````python\n{text}\n````")
            out += [shown for output in cell.get("outputs", []) if (shown := output_of(output))]
    return "\n" + "\n\n".join(out) + "\n"


def output_of(output: dict[str, Any]) -> str:
    """An output of a cell: its HTML, else its picture, else its text."""
    data = output.get("data", {})
    if "text/html" in data:
        html = re.sub(r"\n\s*\n", "\n", "".join(data["text/html"]))
        return f'``````{{raw}} html\n<div class="output">\n{html}\n</div>\n``````'
    if "image/png" in data:
        png = "".join(data["image/png"]).replace("\n", "")
        picture = f'<img alt="The output of the cell above" src="data:image/png;base64,{png}">'
        return f"``````{{raw}} html\n{picture}\n``````"
    text = "".join(data.get("text/plain", output.get("text", ""))).rstrip()
    return f"``````text\n{text}\n``````" if text else ""


def wrap_commands(app: Any, tree: Any) -> None:
    """Commands are coloured, and in a block with a long line comments stand above their lines."""
    for block in tree.findall(lambda node: node.tagname == "literal_block"):
        if block.get("language", "none") == "none":
            text = block.rawsource = comments_above(block.astext())
            block[:] = [type(block[0])(text)]
            block["language"] = "bash" if COMMAND.search(text) else "none"


def comments_above(text: str) -> str:
    """The lines of a block; if one is wider than the column, each comment above its command."""
    lines = text.split("\n")
    if max(map(len, lines)) <= COLUMN:
        return text
    parts = [COMMENT.match(line) for line in lines]
    return "\n".join(f"# {p[2]}\n{p[1]}" if p else line for p, line in zip(parts, lines))


def copy_pages(app: Any, exception: Exception | None) -> None:
    """Puts the HTML pages that documents link to beside the site."""
    for document in ROOT.glob("docs/*.md"):
        for _, path, _ in OPENED.findall(document.read_text("utf-8")):
            target = Path(app.outdir) / path
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, target)


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
    """Where Sphinx calls the functions above."""
    app.connect("source-read", add)
    app.connect("doctree-read", wrap_commands)
    app.connect("build-finished", copy_pages)
    app.connect("autodoc-process-docstring", to_rst)
