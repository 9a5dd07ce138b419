"""The components of the pages with real contents, for those who build them; served in debug mode only."""
