"""While a game is played: moves of people and models, the match's state, the host's controls, probes."""
