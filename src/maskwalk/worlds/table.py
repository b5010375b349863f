"""The worlds, tasks and metrics that come with the project: one import for each that has some."""

import maskwalk.worlds.addition
import maskwalk.worlds.dyck
import maskwalk.worlds.exact.metrics
import maskwalk.worlds.hierarchy
import maskwalk.worlds.hmm
import maskwalk.worlds.latin
import maskwalk.worlds.metrics
import maskwalk.worlds.pcfg
import maskwalk.worlds.potts
import maskwalk.worlds.ranks
import maskwalk.worlds.regular
import maskwalk.worlds.sudoku
import maskwalk.worlds.tasks
import maskwalk.worlds.text.metrics
import maskwalk.worlds.text.world
import maskwalk.worlds.walks.metrics
import maskwalk.worlds.walks.tasks
import maskwalk.worlds.walks.world  # noqa: F401
