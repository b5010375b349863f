"""Packed files, unpacked up to a limit: what a few bytes claim to be is not taken on trust."""

import lzma
import zlib
from pathlib import Path

from maskwalk.errors import MaskwalkError

PACKED = (".xz", ".gz")


def or_packed(path: Path) -> Path:
    """The file, or, where it is not there, the packed one beside it."""
    packed = (path.with_name(path.name + suffix) for suffix in PACKED)
    return path if path.exists() else next((one for one in packed if one.exists()), path)


def unpacked(data: bytes, most: int, source: str | Path) -> bytes:
    """What an .xz or .gz file holds, at most so many bytes; a sentence where it is not whole."""
    kind = "xz" if Path(source).suffix == ".xz" else "gzip"
    try:
        content, complete = (_from_xz if kind == "xz" else _from_gzip)(data, most)
    except (lzma.LZMAError, zlib.error, EOFError) as problem:
        raise MaskwalkError(
            f"{source} is not a complete {kind} file ({problem}); fetch or write it again."
        ) from None
    if len(content) > most:
        raise MaskwalkError(
            f"{source} unpacks to more than the {most:,} bytes that what it describes can have; "
            "it is damaged or not what it says it is: fetch or write it again."
        )
    if not complete:
        raise MaskwalkError(f"{source} is not a complete {kind} file; fetch or write it again.")
    return content


def _from_xz(data: bytes, most: int) -> tuple[bytes, bool]:
    unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=2**28)
    content = unpacker.decompress(data, most + 1)
    return content, unpacker.eof


def _from_gzip(data: bytes, most: int) -> tuple[bytes, bool]:
    """A gzip file may have several members, one after another."""
    content = bytearray()
    ended = False
    while data and len(content) <= most:
        unpacker = zlib.decompressobj(wbits=31)
        content += unpacker.decompress(data, most + 1 - len(content))
        ended, data = unpacker.eof, unpacker.unused_data
        if not ended:
            break
    return bytes(content), ended
