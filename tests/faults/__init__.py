"""Runs that are killed, starved of disk, run twice at once, or misled by the clock."""
