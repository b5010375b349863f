"""`maskwalk tune`: which sampler, with which knobs, for a model at a budget of calls.

candidates.py   the rules that are tried, and the knob of each that sets its calls
trial.py        a setting on a model: calls, held-out likelihood, quality; a job
search.py       finds the knobs, tries every setting, keeps what is finished
result.py       the best, what is not told apart from it, the front
"""
