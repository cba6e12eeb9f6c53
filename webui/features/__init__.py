"""The parts of the page, one folder each: actions or fragments for other features, templates, script and style."""
