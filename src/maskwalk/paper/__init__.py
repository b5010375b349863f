"""The paper: its printed tables, its claims, its lemmas, and how to reproduce them."""
