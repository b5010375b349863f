"""How many positions a round reveals: a fixed number, or 1, 2, 4, … ("exponential")."""

from maskwalk.errors import MaskwalkError, whole

Block = int | str


def check_block(block: object) -> None:
    """Refuses anything but a positive whole number or "exponential"."""
    if isinstance(block, str):
        if block != "exponential":
            raise MaskwalkError(f'block must be a whole number or "exponential", not {block!r}.')
    else:
        whole("block", block, 1)


def block_size(block: Block, round: int) -> int:
    """Positions to reveal in `round` (0 for the first); the last round takes what is left."""
    return 1 << min(round, 30) if isinstance(block, str) else block


SWEEP = tuple({"block": block} for block in (1, 2, 4, 6, 8, "exponential"))
