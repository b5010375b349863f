"""From a masked canvas to tokens: the only loop, what a policy sees, how a token is drawn."""
