"""The page on which people judge one target after another, and the writes of judgments."""
