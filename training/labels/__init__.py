"""Labels: what a codebook asks, statements checked against the engine, aggregated truth, and a classifier."""
