"""Servers of the Model Context Protocol: connected, isolated from us and from each other, and offered as tools.

Nothing that a server sends is trusted: we build the names and descriptions of its tools, their answers are data, and a
failure affects only the call in which it happens.
"""
