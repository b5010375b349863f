"""The denoising transformer of the paper: weights, forward pass, noise schedule."""
