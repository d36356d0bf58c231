"""What was said: words of a real reader, any rate, and what cannot be heard."""

from __future__ import annotations

import difflib
from itertools import pairwise

import numpy as np
import pytest
import soundfile
import soxr

from monitor.errors import UsageError
from monitor.features.phones import recognise_phones
from monitor.networks.phones import PHONES

RATE = 16_000
SECONDS = 10.6
SAID = """
M IH S T ER K W IH L T ER IH Z DH IY AH P AA S AH L AH V DH AH M IH D AH L K L AE S AH Z AE N D W IY
AA R G L AE D T AH W EH L K AH M HH IH Z G AA S P AH L
N AO R IH Z M IH S T ER K W IH L T ER Z M AE N ER L EH S IH N T R AH S T IH NG DH AE N HH IH Z M AE
T ER
"""
"""The beginning of dev-clean/1272/128104: mister Quilter is the apostle of the middle classes."""


@pytest.fixture(scope="module")
def sound(shared):
    path = shared / "speech" / "dev-clean" / "1272" / "128104.opus"
    return soundfile.read(path, frames=round(SECONDS * RATE), dtype="float32")[0]


def alike(found, said=SAID):
    names = [each.phone for each in found]
    return difflib.SequenceMatcher(None, said.split(), names, autojunk=False).ratio()


@pytest.mark.slow
def test_they_are_the_phones_of_the_text(sound):
    """More than by chance: a wrong order of the classes would not pass."""
    found = recognise_phones(sound)
    rng = np.random.default_rng(0)
    other = dict(zip(PHONES, rng.permutation(PHONES), strict=True))
    chance = alike([each._replace(phone=other[each.phone]) for each in found])
    assert alike(found) > max(0.7, 2 * chance)


@pytest.mark.slow
def test_they_come_one_after_the_other_within_the_recording(sound):
    found = recognise_phones(sound)
    assert all(0 <= each.begin < each.end <= SECONDS for each in found)
    assert all(a.end <= b.begin for a, b in pairwise(found))


@pytest.mark.slow
def test_any_rate(sound):
    double = soxr.resample(sound, RATE, 2 * RATE)
    wanted = " ".join(each.phone for each in recognise_phones(sound))
    assert alike(recognise_phones(double, 2 * RATE), wanted) > 0.9


@pytest.mark.slow
def test_silence_and_nothing():
    assert recognise_phones(np.zeros(RATE)) == recognise_phones(np.zeros(0)) == []


@pytest.mark.parametrize("samples", [np.zeros((9, 2)), np.array([np.nan]), np.array(1.0)])
def test_what_is_no_sound_is_refused(samples):
    with pytest.raises(UsageError, match="one channel"):
        recognise_phones(samples)
