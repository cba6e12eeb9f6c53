"""The base of every feature of the page: actions that Python answers with HTML, and templates of that HTML."""
