"""Conversations as files: taken out as a ZIP that people and programs can read, and taken in again."""
