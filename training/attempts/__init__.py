"""One attempt at a run of any kind: its beginning, its progress on disk, its end."""
