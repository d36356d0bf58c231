"""ZEBRA: what pooled scores disclose on average and at worst, to any prior belief.

Measures: D_ECE, the empirical cross-entropy that ideally calibrated scores take off the prior's
entropy, averaged over all priors; ``log10 l``, the strongest likelihood ratio of any score; the
tag, its category from 0 to F.

Source: Nautsch et al., "The Privacy ZEBRA", Interspeech 2020, equations (5), (6) and (8), Table 1;
scores are calibrated by pool-adjacent-violators with ties pooled (docs/method.md section 8).

Misleads: the counts of scores cap ``log10 l``: perfect separation of few scores still reads B or C.
It is an estimate of the worst case, not a bound. The unit of D_ECE is small, 0.72 bits at most.
"""
