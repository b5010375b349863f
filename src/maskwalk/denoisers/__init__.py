"""Denoisers: the protocol, the trained network behind it, and how a name finds one."""

from maskwalk.denoisers.protocol import Denoiser

__all__ = ["Denoiser"]
