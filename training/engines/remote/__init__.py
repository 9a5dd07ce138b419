"""Models at an address: configuration, allow-list, guarded transport, and the chat client."""
