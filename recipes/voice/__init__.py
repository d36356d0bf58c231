"""A small speaker-embedding network: prepare, train, evaluate, export; see recipes/README.md."""
