"""Similarity rank disclosure (SRD): bits that the rank of the true speaker gives away.

Measures: how far the ranks of the true speaker are from uniform. A trial of rank k discloses
``log2(N p_k)`` bits of the ``log2 N`` that single a speaker out; MeanD is the mean over trials,
from the histogram of ranks and from the beta-binomial law fitted to it.

Source: Bäckström et al., "Privacy Disclosure of Similarity Rank in Speech and Language Processing",
sections III and IV, equation (3) as corrected in docs/method.md section 3; the five losses are
those of its Table II, the speakers' own means its figure 6.

Misleads: MeanD counted from a histogram is above zero where nothing is disclosed, about ``(N - 1) /
(2 n ln 2)`` bits of n trials: compare it with the null band, or read the law's. A mean hides the
few speakers who are always found. Ranks say nothing of how sure an attacker is.
"""
