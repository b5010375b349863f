"""The tests. While they run, types are checked, of every call in the package (typechecked.py)."""

from tests.typechecked import install

install()
