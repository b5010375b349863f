"""Kernels for accelerators, in Triton; the plain formulas beside them run everywhere else."""
