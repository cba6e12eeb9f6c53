"""The page: Gradio and HTTP around the studio."""

# Before Gradio: it mends the proxy variables that Gradio would fail at.
import agent  # noqa: F401
