"""Running games: moves of people and models, the match's state, the host's controls, probes."""
