"""Aivista without a screen: conversations, turns and pictures behind one door, `Studio`."""
