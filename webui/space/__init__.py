"""Aivista as a Hugging Face Space: the Spacefile, the folder built from it, its way to the Hub, its start there."""
