"""The only ways from the tests into the inside of the program: a rewrite changes these files, and no test."""
