"""What the worlds with exact conditionals are made of: a base, and three ways to sum over a law."""
