"""Membership inference: true positives at low false positive rates, and their epsilon.

Measures: how often an attacker is right who is almost never wrong (TPR at a false positive rate of
1e-2, 1e-3 and 1e-4), and which epsilon of differential privacy that rules out, in nats, with a
Clopper-Pearson lower bound.

Source: "VoxGuard: Evaluating user and attribute privacy in speech via Membership Inference
Attacks", section 4 and equation (5) (docs/method.md section 8).

Misleads: a rate f needs 1 / f non-mated scores at least, and ties keep the rate that is reached
below it. epsilon is a lower bound on what the mechanism leaks: a small one proves nothing.
"""
