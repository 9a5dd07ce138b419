"""One attempt at a run of any kind: its start, its progress on disk, its end."""
