"""Middleware around every request: hosts, password, visitors, limits, and which of Gradio's routes are open."""
