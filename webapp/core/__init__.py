"""What every app stands on: databases, queue, clock, health, pages and the socket handshake."""
