"""What every feature of the page stands on: actions that Python answers with HTML, and the templates of that HTML."""
