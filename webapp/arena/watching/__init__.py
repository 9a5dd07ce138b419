"""The chat of people who watch a game, which no player of the game may read."""
