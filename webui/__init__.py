"""The page: Gradio and HTTP around the studio."""
