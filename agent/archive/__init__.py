"""Export of conversations to a ZIP that people and programs can read, and import from it."""
