"""What a viewer sees of a match as it goes on: the feed, the client's state, its fragments, the socket."""
