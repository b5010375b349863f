"""The worlds, tasks and metrics that come with the project: one import for each that has some."""

import maskwalk.worlds.metrics
import maskwalk.worlds.tasks
import maskwalk.worlds.text.metrics
import maskwalk.worlds.text.world
import maskwalk.worlds.walks.metrics
import maskwalk.worlds.walks.tasks
import maskwalk.worlds.walks.world  # noqa: F401
