"""Training: the objective, the step, the loop, checkpoints and the zoo."""
