"""The files that `maskwalk new KIND NAME` writes: one module a kind.

Each has `FILE`, the thing itself, `TEST`, a test that passes, and `NEXT`, the command to go on
with; <NAME>, <CLASS>, <TITLE> and <PATH> are filled in.
"""
