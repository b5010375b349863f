"""Random walks on hidden graphs: graphs, laws of walks, exact oracles, tasks and metrics."""
