"""Ranks as anonymity: mean rank of a speaker over its tests, and share of near ranks.

Measures: percentiles over speakers of the mean rank, the share of trials at rank k or nearer, and
the nearest rank of all.

Source: Tura-Vecino et al. (USC), section 3.3, equation (2). What USC calls by other names is here
the mean rank of two roles: anonymised queries against anonymised references; anonymised queries
against original references (its definition of singling out); original queries against anonymised
references (its description of that experiment). Cosine is symmetric, the rank is not.

Misleads: a mean rank is not k-anonymity: one first rank hides among a hundred tests. The lowest
percentile lies far below (N + 1) / 2 by chance alone.
"""
