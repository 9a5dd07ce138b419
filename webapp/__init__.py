"""The site: datasets, runs, checkpoints, the table and judgments, on Django."""
