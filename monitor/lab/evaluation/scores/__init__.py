"""Scores of trials against enrolled speakers, their counts and resamples.

`matrix.ScoreMatrix` has every trial against every speaker, `score_list.ScoreList` single
comparisons, `comparisons.Comparisons` both in one. `counts` are what figures of pooled scores stand
on, `speaker_bootstrap` gives the bootstrap replicates of speakers.
"""
