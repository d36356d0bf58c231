"""Scores, labels and embeddings from files: arrays, tables, score lists with trial lists.

`scores.read_scores` and `embeddings.read_embeddings` are the two ways in (docs/evaluate-input.md);
`layout` finds out what the columns of a file are, `labels` who spoke each trial.
"""
