"""BibTeX entries of the papers that define the metrics, one per line."""

from __future__ import annotations

from monitor.lab.evaluation.family import families
from monitor.version import __version__

_SRD = (
    '@article{backstrom2025srd, author={B{\\"a}ckstr{\\"o}m, T. and Vali, M. H. and Nguyen, M. and '
    "Rech, S.}, title={Privacy Disclosure of Similarity Rank in Speech and Language Processing}, "
    "journal={arXiv:2508.05250}, year={2025}}"
)
_LID = (
    "@article{sterns2026lid, author={{\\v S}terns, D. and Drossos, K. and Fernandes, N. and "
    'B{\\"a}ckstr{\\"o}m, T. and Palamidessi, C.}, title={Goodbye Equal Error Rate, Hello Local '
    "Information Disclosure: Evaluating Voice Anonymisation against {1-to-N} Linkage Threats}, "
    "journal={arXiv:2607.06259}, year={2026}}"
)
CITATIONS = {
    "srd": (_SRD,),
    "lid": (_LID,),
    "longitudinal": (_LID,),
    "zebra": (
        "@inproceedings{nautsch2020zebra, author={Nautsch, A. and Patino, J. and Tomashenko, N. "
        "and Yamagishi, J. and No{\\'e}, P.-G. and Bonastre, J.-F. and Todisco, M. and Evans, N.}, "
        "title={The Privacy {ZEBRA}: Zero Evidence Biometric Recognition Assessment}, "
        "booktitle={Interspeech}, pages={1698--1702}, year={2020}, "
        "doi={10.21437/Interspeech.2020-1815}}",
    ),
    "verification": (
        "@article{tomashenko2024voiceprivacy, author={Tomashenko, N. and Miao, X. and Champion, P. "
        "and Meyer, S. and Wang, X. and Vincent, E. and Panariello, M. and Evans, N. and "
        "Yamagishi, J. and Todisco, M.}, title={The {VoicePrivacy} 2024 Challenge Evaluation "
        "Plan}, journal={arXiv:2404.02677}, year={2024}}",
        '@article{brummer2006cllr, author={Br{\\"u}mmer, N. and du Preez, J.}, '
        "title={Application-independent evaluation of speaker detection}, journal={Computer Speech "
        "and Language}, volume={20}, pages={230--275}, year={2006}}",
    ),
    "linkage": (
        "@article{gomez2018unlinkability, author={Gomez-Barrero, M. and Galbally, J. and Rathgeb, "
        "C. and Busch, C.}, title={General Framework to Evaluate Unlinkability in Biometric "
        "Template Protection Systems}, journal={IEEE Transactions on Information Forensics and "
        "Security}, volume={13}, year={2018}, doi={10.1109/TIFS.2017.2788000}}",
        "@inproceedings{vauquier2025legal, author={Vauquier, N. and Srivastava, B. M. L. and "
        "Hosseini, S. A. and Vincent, E.}, title={Legally validated evaluation framework for voice "
        "anonymization}, booktitle={Interspeech}, year={2025}}",
    ),
    "anonymity": (
        "@article{turavecino2025usc, author={Tura-Vecino, B. and Maji, S. and Varier, A. and "
        "Bonafonte, A. and Valles, I. and Owen, M. and Papayiannis, C. and Radel, L. and Strimel, "
        "G. and Feyisetan, O. and Barra-Chicote, R. and Rastrow, A. and Leutnant, V. and Wood, "
        "T.}, title={Universal Semantic Disentangled Privacy-preserving Speech Representation "
        "Learning}, journal={arXiv:2505.13085}, year={2025}}",
    ),
    "among": (
        "@software{disclosuremonitor, author={{The disclosure monitor's developers}}, "
        f"title={{Disclosure monitor}}, version={{{__version__}}}, year={{2026}}}}",
    ),
    "membership": (
        "@article{tsaprazlis2025voxguard, author={Tsaprazlis, E. and Lertpetchpun, T. and Feng, T. "
        "and Karimireddy, S. P. and Narayanan, S.}, title={{VoxGuard}: Evaluating user and "
        "attribute privacy in speech via Membership Inference Attacks}, "
        "journal={arXiv:2509.18413}, year={2025}}",
    ),
    "accounting": (
        "@inproceedings{kairouz2015composition, author={Kairouz, P. and Oh, S. and Viswanath, P.}, "
        "title={The Composition Theorem for Differential Privacy}, booktitle={ICML}, year={2015}}",
    ),
}
"""Entries by key of the family of metrics. Extrapolation to a crowd is ours."""


def format_bibtex() -> str:
    """Format one entry per line, below the titles of its families and names of their figures."""
    heads: dict[tuple[str, ...], list[str]] = {}
    for family in families():
        names = ", ".join(entry.name for entry in family.figures)
        heads.setdefault(CITATIONS[family.key], []).append(f"% {family.title}: {names}")
    lines = [line for entries, titles in heads.items() for line in (*titles, *entries)]
    return "\n".join(lines) + "\n"
