"""What the contract tests need to know, one module a game: `CASES`, and where seats hide facts `WORLDS`, `SECRETS`."""
