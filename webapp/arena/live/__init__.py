"""The live view of a match: its feed, the client's state, HTML fragments and the socket."""
