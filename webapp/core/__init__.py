"""Shared infrastructure: databases, queue, clock, health, quotas, pages and the socket handshake."""
