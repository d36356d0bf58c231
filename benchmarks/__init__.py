"""Side by side with public peers: run with `python -m benchmarks.NAME` from the repository."""
