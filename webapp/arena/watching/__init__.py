"""Who watches a game: what they write to each other, which no player of the game may read."""
