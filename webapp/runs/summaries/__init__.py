"""Summaries of runs' results for pages: curves, key metric, comparison, head-to-heads, lineage."""
