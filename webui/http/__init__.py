"""What stands around every request: hosts, the password, who asks, how much they may, and what of Gradio is open."""
