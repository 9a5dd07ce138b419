"""Pages of the experiments: of participants (`taking`), of researchers (`studies`, `parts`), of facilitators."""
