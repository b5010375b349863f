"""What flows in one direction: imports point down this list, never up."""

import ast
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "maskwalk"
LAYERS = [
    "errors",  # 0: sentences, specs, numbers, files
    "reading",
    "resources",
    "specs",
    "kernels",
    "streams",
    "stats",
    "denoiser",
    "worlds",  # 1: what is true
    "denoisers",  # 2: what answers
    "decoding",  # 3: what decodes
    "samplers",
    "analysis",  # 4: what is known of it
    "training",
    "bench",  # 5: what runs it
    "testing",
    "report",  # 6: what shows it
    "paper",
    "cli",  # 7: what a person types
    "__main__",
]


def layer(module: str) -> int:
    """The row of the package that `maskwalk.module` lies in."""
    package = module.split(".")[0]
    assert package in LAYERS, f"{module} has no place in the layers: add it to tests/test_layers.py"
    return LAYERS.index(package)


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("maskwalk"):
            assert node.level == 0
            base = (node.module or "").removeprefix("maskwalk").lstrip(".")
            names = [a.name for a in node.names]
            modules = [n for n in names if (SOURCE / base.replace(".", "/") / f"{n}.py").exists()]
            found |= {f"{base}.{m}".lstrip(".") for m in modules} or {base}
        elif isinstance(node, ast.Import):
            found |= {
                a.name.removeprefix("maskwalk.")
                for a in node.names
                if a.name.startswith("maskwalk.")
            }
    return {name for name in found if name}


def test_imports_point_down() -> None:
    wrong = []
    for path in sorted(SOURCE.rglob("*.py")):
        name = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        if name == "__init__":
            continue
        for other in imports(path):
            if layer(other) > layer(name):
                wrong.append(f"{name} imports {other}")
    assert not wrong, wrong


def test_no_device_is_named_below_the_command_line() -> None:
    """Devices follow the input tensors: no "cuda" literal outside training and cli."""
    for path in SOURCE.rglob("*.py"):
        if path.parts[-2] in ("training", "cli") or "cli" in path.parts:
            continue
        tree = ast.parse(path.read_text())
        literals = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)}
        assert "cuda" not in literals, path
