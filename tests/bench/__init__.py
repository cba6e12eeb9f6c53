"""What the studio costs beside the bare SDK and a bare page: `python -m tests.bench`."""
