"""Speaker verification: how well pooled scores tell equal speakers from different ones.

Measures: the equal error rate by two rules, Cllr of the scores as log-likelihood ratios, and Cllr
after ideal calibration (min Cllr).

Source: Brummer and du Preez, 2006, for Cllr and the ROC's convex hull; the nearest threshold is
VoicePrivacy's rule (docs/method.md section 8).

Misleads: a pool forgets which trial a score came from, so an EER near chance can hide a few people
who are always recognised. The two rules differ on few or tied scores. Low is bad for privacy. Cllr
of scores that are no log-likelihood ratios means nothing.
"""
