"""Spec strings, `name(key=value, …)`, and the tables of things they can name.

A spec is read with Python's own grammar but never evaluated: literals, nested specs and
lists of them are the only values there are, so a spec string cannot run code. Every extensible kind
of thing in the project (world, graph, walk, task, sampler, draw, score, denoiser, metric) is one
`Registry`: one line adds a member, and `maskwalk list`, the contract test, the benchmark and the
report know it.

A user's members come from a file (`--include my_file.py`) or from an installed package that names
a module under the entry point group `maskwalk.plugins`.
"""

from maskwalk.specs.grammar import Spec, parse
from maskwalk.specs.plugins import PLUGINS, load_installed_plugins, load_plugin
from maskwalk.specs.registry import F, Registry

__all__ = ["PLUGINS", "F", "Registry", "Spec", "load_installed_plugins", "load_plugin", "parse"]
