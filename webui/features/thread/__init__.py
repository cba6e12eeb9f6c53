"""The thread of a conversation: how its turns look, and the stream by which the page follows a running one."""
