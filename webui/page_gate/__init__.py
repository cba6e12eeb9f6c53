"""What every request to Gradio's own part of the page passes, before Gradio sees it."""
