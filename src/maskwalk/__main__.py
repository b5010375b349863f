"""`python -m maskwalk` is `maskwalk`."""

from maskwalk.cli import main

main()
