"""Many episodes at once: turn order, retries, forfeits, errors as data."""
