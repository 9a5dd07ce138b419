"""Queues: what is judged, by whom and in which order; their pages and writes."""
