"""Isolated execution of untrusted scripts: a JavaScript engine in a child process that exists for one run."""
