"""Denoisers: the trained network, files and the zoo, language models, and how a name finds one."""
