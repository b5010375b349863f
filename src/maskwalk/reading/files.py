"""A file before it is read: it is one, and so large. A device or a pipe may never end."""

import errno
import os
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from maskwalk.errors import MaskwalkError


def file_size(path: Path) -> int:
    """The bytes of a file that can be read to its end, or a sentence."""
    try:
        found = path.stat()
    except (OSError, ValueError) as problem:  # a name with a NUL in it is no OSError
        why = problem.strerror if isinstance(problem, OSError) else problem
        raise MaskwalkError(f"Cannot read {path}: {why}.") from None
    if S_ISDIR(found.st_mode):
        raise MaskwalkError(f"Cannot read {path}: {os.strerror(errno.EISDIR)}.")
    if not S_ISREG(found.st_mode):
        raise MaskwalkError(
            f"{path} is a device or a pipe, which may never end; write what it gives into a file, "
            "and name that."
        )
    return found.st_size
