"""The evaluation suite as a run of kind `suite`: which games are played, their numbers, and the run."""
