"""The language experiment: books, models of them, and what the texts they write are worth."""
