"""The leaderboard: rules on one scale, from records of any run or evaluation.

board.py   the numbers: coherence within a budget, area under the curve, KL per token
replayed.py   the KL of an evaluated policy, from its evaluation
page.py    leaderboard.json and leaderboard.html
"""
