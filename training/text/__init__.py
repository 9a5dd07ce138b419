"""From what a viewer saw to messages and tokens, and from a reply to a move."""
