"""Files that somebody may have edited: their shape, and what they unpack to, checked.

shapes.py    tables, lists, numbers, texts and flags; JSON
packed.py    .xz and .gz
models.py    what a model says of itself
"""

from maskwalk.reading.packed import PACKED, or_packed, unpacked
from maskwalk.reading.shapes import (
    Shape,
    Wrong,
    anything,
    by_type,
    file_name,
    flag,
    json_value,
    listed,
    maybe,
    number,
    one_of,
    row,
    shown,
    table,
    text,
    whole,
)

__all__ = [
    "PACKED",
    "Shape",
    "Wrong",
    "anything",
    "by_type",
    "file_name",
    "flag",
    "json_value",
    "listed",
    "maybe",
    "number",
    "one_of",
    "or_packed",
    "row",
    "shown",
    "table",
    "text",
    "unpacked",
    "whole",
]
