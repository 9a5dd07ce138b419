"""For spectators: finished games worth a look, and a chat that no player of the game can read."""
