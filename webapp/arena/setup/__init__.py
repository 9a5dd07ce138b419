"""Setup of a game: tables, seats, links, rules and scenarios."""
