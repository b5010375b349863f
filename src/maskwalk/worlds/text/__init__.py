"""Text: books as tokens, prompts, and what is measured of texts."""
