"""Search over labelled games: what is read of each, the filter, its page, and searches that people keep."""
