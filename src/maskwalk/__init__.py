"""maskwalk: parallel samplers of masked diffusion models, measured where the truth is known."""

__version__ = "0.1.0"
