"""The notebooks, run without Jupyter: `python -m tests.run_notebooks` writes their outputs anew."""

import ast
import base64
import contextlib
import io
import json
import os
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "notebooks"
NOTEBOOKS = sorted(path.name for path in FOLDER.glob("*.ipynb"))


def notebook(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((FOLDER / name).read_text("utf-8"))
    return content


def execute(name: str) -> tuple[dict[str, Any], list[tuple[str, Any]]]:
    """The names of a notebook; for every code cell what it prints, and the value it ends in."""
    module = types.ModuleType(f"notebook_{Path(name).stem}")
    sys.modules[module.__name__] = module  # where classes of the notebook say they come from
    results: list[tuple[str, Any]] = []
    for number, cell in enumerate(notebook(name)["cells"]):
        if cell["cell_type"] != "code":
            continue
        tree, printed, value = ast.parse("".join(cell["source"])), io.StringIO(), None
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        with contextlib.redirect_stdout(printed):
            exec(compile(tree, f"{name}[{number}]", "exec"), vars(module))
            if last is not None:
                code = compile(ast.Expression(last.value), f"{name}[{number}]", "eval")
                value = eval(code, vars(module))
        results.append((printed.getvalue(), value))
    del sys.modules[module.__name__]
    return vars(module), results


def outputs(printed: str, value: Any, count: int) -> list[dict[str, Any]]:
    """What a code cell shows, as a notebook's file holds it."""
    found: list[dict[str, Any]] = []
    if printed:
        lines = printed.splitlines(keepends=True)
        found.append({"name": "stdout", "output_type": "stream", "text": lines})
    if value is not None:
        data: dict[str, Any] = {"text/plain": repr(value).splitlines(keepends=True)}
        if hasattr(value, "_repr_png_"):
            data["image/png"] = base64.b64encode(value._repr_png_()).decode()
        html = value._repr_html_() if hasattr(value, "_repr_html_") else None
        if html is not None:
            data["text/html"] = html.splitlines(keepends=True)
        about = {"execution_count": count, "metadata": {}, "output_type": "execute_result"}
        found.append({"data": data, **about})
    return found


def main() -> None:
    for name in NOTEBOOKS:
        content = notebook(name)
        with tempfile.TemporaryDirectory() as cache:
            os.environ["MASKWALK_CACHE"] = cache
            _, results = execute(name)
        code = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
        for count, (cell, (printed, value)) in enumerate(zip(code, results, strict=True), 1):
            cell["outputs"] = outputs(printed, value, count)
            cell["execution_count"] = count
        text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        (FOLDER / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
