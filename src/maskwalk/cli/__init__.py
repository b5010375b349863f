"""The command line: one command a file; `main` registers them."""
