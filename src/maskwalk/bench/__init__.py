"""Running things and keeping what came out: cells, experiments, records, workers, verdicts."""
