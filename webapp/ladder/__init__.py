"""The ladder: ratings of people, models and scripted players, recomputed from the log of matches."""
