"""How well a single agent knows when to search and when to answer: `measure` asks, `curves` and `report` compute."""
