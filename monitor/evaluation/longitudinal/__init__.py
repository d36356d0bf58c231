"""What several trials of one speaker disclose together, against the number of trials.

Measures: LID of the sum of a speaker's log-likelihood ratios, divided by a temperature; and SRD's
product of rank laws.

Source: the longitudinal form of LID (Šterns et al.); temperatures against dependent trials are our
own (docs/method.md section 8, `monitor.maths.tempering`).

Misleads: the plain sum takes trials for independent and becomes overconfident. Where sum and fitted
temperature part, believe the latter. The linear and the square-root guide are a scale, no
guarantee.
"""
