"""`python -m maskwalk` is `maskwalk`."""

from maskwalk.cli.main import main

main()
