"""The parts of the page, a folder each: actions or what others show of it, templates, script and style."""
