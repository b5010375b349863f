"""Numbers of a document, tied by comments in its source to what they come from, and compared."""

from maskwalk.report.verify.document import Tie, Verified, verify_document
from maskwalk.report.verify.sources import Sources

__all__ = ["Sources", "Tie", "Verified", "verify_document"]
