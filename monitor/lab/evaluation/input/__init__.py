"""Scores, labels and embeddings from files (docs/evaluate-input.md)."""
