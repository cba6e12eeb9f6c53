"""Scripts of others, run where they reach nothing: a JavaScript engine in a child process that lives for one run."""
