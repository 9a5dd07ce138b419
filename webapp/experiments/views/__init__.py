"""Pages of the experiments: of participants; of researchers, for the design; of facilitators, while it runs."""
