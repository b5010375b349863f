"""The commands, one file each: parse, call, print. `cli.py` is the table of them."""
