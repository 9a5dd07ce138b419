"""Reports on a run's results: curves, key metric, comparison, head-to-heads, lineage."""
