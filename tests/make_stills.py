"""The stills of the player in README and on the site: `python -m tests.make_stills`.

The page of the command that README names, on its last round, in light and in dark; for a phone the
second sampler alone. A palette keeps the files small.
"""

import re
import shlex
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright
from typer.testing import CliRunner

from maskwalk.cli.main import app
from tests.conftest import CHROMIUM, FLAGS

ROOT = Path(__file__).resolve().parent.parent
FIGURES = ROOT / "docs" / "figures"
COMMAND = re.compile(r"^ +maskwalk (play .*?)  +#", re.MULTILINE)
COLOURS = 48
STILLS = {  # a file's name, and what is shown how wide
    "player": (1100, ".panes"),
    "player_phone": (380, ".pane:nth-child(2)"),
}
HIDDEN = ".deck, .corner { display: none !important; } .pane { box-shadow: none !important; }"


def main() -> None:
    """Makes every still again."""
    (words,) = COMMAND.findall((ROOT / "README.md").read_text("utf-8"))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        page = Path(folder) / "play.html"
        made = CliRunner().invoke(app, [*shlex.split(words), "--out", str(page)])
        assert made.exit_code == 0, made.output
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for stem, (width, shown) in STILLS.items():
            for scheme, ending in (("light", ""), ("dark", "_dark")):
                take(browser, page, FIGURES / f"{stem}{ending}.png", width, shown, scheme)
        browser.close()


def take(browser: Any, page: Path, to: Path, width: int, shown: str, scheme: str) -> None:
    """One picture, at twice the size."""
    context = browser.new_context(
        viewport={"width": width, "height": 1200},
        color_scheme=scheme,
        reduced_motion="reduce",
        device_scale_factor=1.6 if width < 600 else 1.2,
    )
    tab = context.new_page()
    tab.goto(page.as_uri())
    tab.add_style_tag(content=HIDDEN)
    tab.locator(shown).first.screenshot(path=to)
    context.close()
    with Image.open(to) as image:
        few = image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    few.save(to, optimize=True)


if __name__ == "__main__":
    main()
