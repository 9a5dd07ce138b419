"""Order among many runs: tags, notes, groups, pins, the archive, and the columns of the list."""
