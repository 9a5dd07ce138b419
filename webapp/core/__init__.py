"""What every app uses: databases, queue, clock, health, quotas, pages and the socket handshake."""
