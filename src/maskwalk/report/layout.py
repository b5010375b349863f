"""Marks at one place and words in a small figure: no point is moved, no label covers anything.

All lengths are in points (1/72 inch) with y upwards. The page does the same in its script, where
the reader's zoom and choice of samplers change what there is to place.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import dist

Box = tuple[float, float, float, float]  # left, bottom, right, top
WAYS = ((-1, 1), (-1, 0), (0, 1), (1, 0), (1, 1), (0, -1), (1, -1), (-1, -1))
REACHES = (6.0, 13.0, 22.0, 32.0, 44.0)


@dataclass(frozen=True)
class Label:
    """A text with the place of its lower left corner; `far` ones want a line to their point."""

    text: str
    x: float
    y: float
    box: Box
    far: bool


def rings(
    points: Sequence[tuple[float, float]], first: Sequence[int], gap: float, most: int
) -> list[int]:
    """Which ring each point is drawn as: 0 is a mark, 1 a ring around it, up to `most`.

    Points closer than `gap` get different ones; `first` choose first. No point is moved.
    """
    level = [0] * len(points)
    placed: list[int] = []
    for i in [*first, *(i for i in range(len(points)) if i not in set(first))]:
        taken = {level[j] for j in placed if dist(points[i], points[j]) < gap}
        level[i] = next((ring for ring in range(most) if ring not in taken), most)
        placed.append(i)
    return level


def _shared(a: Box, b: Box) -> float:
    wide = min(a[2], b[2]) - max(a[0], b[0])
    high = min(a[3], b[3]) - max(a[1], b[1])
    return max(wide, 0.0) * max(high, 0.0)


def place_labels(
    wanted: list[tuple[float, float, str]], taken: list[Box], frame: Box, sign: int, size: float
) -> list[Label]:
    """A place for every label, if possible on the empty side of the front (`sign` 1: above)."""
    boxes, out = list(taken), []
    for px, py, text in wanted:
        wide, high = 0.62 * size * len(text), 1.15 * size
        best: tuple[float, float, Box] | None = None
        for reach in REACHES:
            for dx, dy in WAYS:
                dy *= sign
                x = px + dx * reach * (0.7 if dy else 1.0) - wide * (1 - dx) / 2
                y = py + dy * reach - high / 2
                box = (x, y, x + wide, y + high)
                outside = max(0.0, frame[0] - x, box[2] - frame[2])
                outside += max(0.0, frame[1] - y, box[3] - frame[3])
                cost = 40 * outside + sum(_shared(box, other) for other in boxes)
                if best is None or cost < best[0]:
                    best = (cost, reach, box)
        if best:
            _, reach, box = best
            boxes.append(box)
            out.append(Label(text, box[0], box[1] + 0.15 * size, box, reach > REACHES[0]))
    return out
