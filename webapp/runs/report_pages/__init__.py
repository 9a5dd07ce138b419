"""Report pages: Markdown of a person with live charts, and numbers that are pinned with where they come from."""
