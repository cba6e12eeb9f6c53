"""The thread of a conversation: what its turns look like, and the stream by which the page follows one at work."""
