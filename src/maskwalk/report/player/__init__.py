"""The player: sequences being unmasked, round by round, beside a picture of their world.

A *reel* is one sequence of one sampler (bench/reels.py, or the trace of a record); a *stage* is
what a world looks like (stages.py, maps.py). The page's scripts play reels on stages.
"""
