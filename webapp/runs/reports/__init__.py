"""What a run's pages show of its results: curves, key metric, comparison, head-to-heads, lineage."""
