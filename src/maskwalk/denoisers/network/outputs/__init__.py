"""What the network's last numbers mean: one output a file, and the table of them."""

from maskwalk.denoisers.network.outputs.base import OUTPUTS, PLAIN, Output, cross_entropy
from maskwalk.denoisers.network.outputs.chain import Chain
from maskwalk.denoisers.network.outputs.entmax import Entmax

__all__ = ["OUTPUTS", "PLAIN", "Chain", "Entmax", "Output", "cross_entropy"]
