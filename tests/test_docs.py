"""The tutorials' code runs as it stands in the documents."""

import re
import sys
from pathlib import Path

import pytest

from maskwalk.samplers import SAMPLERS

DOCS = Path(__file__).parent.parent / "docs"


def test_add_a_sampler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (DOCS / "add_a_sampler.md").read_text()
    sampler, check = re.findall(r"```python\n(.*?)```", page, re.S)
    (tmp_path / "halves.py").write_text(sampler)
    monkeypatch.syspath_prepend(str(tmp_path))
    exec(compile(check, "add_a_sampler.md", "exec"), {})
    assert "halves" in SAMPLERS._makers
    del SAMPLERS._makers["halves"], sys.modules["halves"]
