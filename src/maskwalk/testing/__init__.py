"""Somebody else's decoder under test: a model that is never wrong, and the audit made with it."""

from maskwalk.testing.model import OracleModel

__all__ = ["OracleModel"]
