"""Linkability: three quantities that are called so elsewhere, or stand beside it.

Measures: ``d_sys``, how little the histograms of mated and non-mated scores overlap; ``pi_link``,
the chance that the true speaker scores highest among N' people drawn at random; ``pi_sing``, the
chance that a threshold isolates exactly one speaker, whoever it is.

Source: Gomez-Barrero et al., 2018, for D_sys; Vauquier et al., 2025, for pi_link and pi_sing, the
legally validated framework (docs/method.md section 8).

Misleads: D_sys depends on its bins, reads 0 of ten mated scores that separate perfectly, and above
0 by chance. Chance of pi_link is 1 / N', so name N' with it; ties go to the attacker. Chance of
pi_sing is 37 %, not 0.
"""
