"""Servers of the Model Context Protocol: connected to, kept apart from us and from each other, and offered as tools.

Nothing that a server says is believed: its tools are named and described by us, what they answer is data, and no
failure of its reaches further than the call it happened in.
"""
