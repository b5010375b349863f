"""Rules of the table against plain loops over their definitions, on random toy networks."""
