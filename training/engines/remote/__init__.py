"""Remote models: configuration, allow-list, guarded transport, and the chat client."""
