"""What people who watch games have: finished games worth a look, and a chat that no player of the game may read."""
