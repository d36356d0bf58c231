"""Local information disclosure (LID): bits that a trial gives a calibrated attacker.

Measures: ``log2(N p)``, p being the posterior of the true speaker after the scores of a trial were
normalised by row, calibrated (Platt) and put through a softmax. ALID is the mean over trials, PDR
the share of trials above 0 bits, LID+ and LID- the means of those above and of the others.

Source: Šterns et al., "Goodbye Equal Error Rate, Hello Local Information Disclosure", Tables 3 and
4, figure 4; two calibrations, the paper's and that of the authors' public code (docs/method.md
section 8).

Misleads: row normalisation caps what a trial can disclose below ``log2 N``, however good the
scores, so read it against its own ceiling. It is as good as the speakers that it was calibrated on.
LID is signed: a mean of 0 can hide trials that disclose a lot beside trials that mislead.
"""
