"""A sparse matrix whose product with a batch does not depend on the batch."""

import warnings

import torch
from jaxtyping import Float, Int
from scipy.sparse import csr_array
from torch import Tensor


class Sparse:
    """A sparse matrix for `matrix @ dense`, on the device of its entries.

    On the CPU the product is scipy's: torch's own adds up a column in an order that depends on how
    many there are, so that an answer would depend (by rounding) on the batch it is in.
    """

    def __init__(
        self,
        rows: Int[Tensor, " entries"],
        columns: Int[Tensor, " entries"],
        values: Float[Tensor, " entries"],
        shape: tuple[int, int],
    ) -> None:
        if values.device.type == "cpu":
            index = (rows.numpy(), columns.numpy())
            self._scipy = csr_array((values.numpy(), index), shape=shape)
        else:
            order = (rows * shape[1] + columns).argsort()
            with warnings.catch_warnings():  # torch asks us to say what check_invariants says
                warnings.filterwarnings("ignore", "Sparse invariant checks")
                self._torch = torch.sparse_coo_tensor(
                    torch.stack([rows, columns])[:, order],
                    values[order],
                    shape,
                    check_invariants=True,
                    is_coalesced=True,
                )

    @classmethod
    def of(cls, matrix: csr_array) -> "Sparse":
        """A matrix on the CPU as it is, without a copy."""
        sparse = cls.__new__(cls)
        sparse._scipy = matrix
        return sparse

    def __matmul__(self, dense: Float[Tensor, "rows batch"]) -> Float[Tensor, "after batch"]:
        if dense.device.type == "cpu":
            return torch.from_numpy(self._scipy @ dense.numpy())
        return self._torch @ dense
