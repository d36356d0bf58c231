"""How much higher same-session figures are than cross-session ones, and for whom it matters.

Measured on the shipped readers, who have laws of both kinds: what a voice discloses on average to a
template of the same recording, less what it does to one of another.

Source: docs/method.md section 4.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from monitor.kinds import FeatureSpec, comparable_features
from monitor.population.interpolation import at_template
from monitor.population.population import Population

__all__ = ["flattery", "flattery_bits"]

_SHOWN = (10.0, 60.0)
"""Speech seconds at which the difference is told."""


def flattery_bits(
    features: Mapping[str, FeatureSpec], speakers: int, template_seconds: float
) -> dict[float, float] | None:
    """Expected bits of the shipped same-session law less those of the cross-session law.

    Args:
        features: what is listened for, all of them together.
        speakers: N.
        template_seconds: D.

    Returns:
        bits by speech seconds; None where the shipped readers have no laws of these features.
    """
    reference = Population.reference()
    laws = [reference.laws.find(tuple(features), session) for session in ("same", "cross")]
    if len(comparable_features(features, reference.specs)) < len(features) or None in laws:
        return None
    still = np.zeros(len(features), dtype=bool)
    same, cross = (at_template(law, template_seconds, still) for law in laws if law is not None)
    row = slice(0, 1)
    return {
        at: float(
            same.at(at).expected_bits(speakers, row)[0]
            - cross.at(at).expected_bits(speakers, row)[0]
        )
        for at in _SHOWN
    }


def flattery(features: Mapping[str, FeatureSpec], speakers: int, template_seconds: float) -> str:
    """`flattery_bits` in words, to follow "flatters the attacker"."""
    bits = flattery_bits(features, speakers, template_seconds)
    if bits is None:
        return f"by how much is not known for {'+'.join(features)}"
    told = " and ".join(f"{max(b, 0.0):.1f} bits at {at:g} s" for at, b in bits.items())
    return f"among {speakers} of the shipped readers by {told} of speech"
