"""Bad input: every row of these tables is a sentence and exit code 2, never a traceback."""
