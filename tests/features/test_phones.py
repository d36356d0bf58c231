"""Units of the phone network and tokens of the codec as features, and phones that were said.

`python -m tests.features.test_phones` writes the golden units anew, after another network has taken
the place of this one.
"""

import difflib
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import soxr

from monitor.errors import UsageError
from monitor.features.extractor import VoiceActivity
from monitor.features.framing import join_tracks
from monitor.features.phones import Phones, Tokens, recognise_phones
from monitor.networks.phones import PHONES, shipped_units
from monitor.networks.usc import TokenStream, UscNetwork
from monitor.types import Track
from tests.contracts import babble
from tests.usc_weights import usc_weights

GOLDEN = Path(__file__).with_name("golden_phones.json")
RATE = 16_000
SECONDS = 12
READERS = ("dev-clean/1272/128104", "dev-clean/1993/147966")


def heard(feature, parts):
    whole = feature.process(np.empty(0, np.float32))
    for part in parts:
        whole = join_tracks(whole, feature.process(part))
    return join_tracks(whole, feature.flush())


@pytest.fixture(scope="module", params=READERS)
def speech(shared: Path, request):
    """The beginning of a real reader, with half a second of silence in it."""
    path = shared / "speech" / f"{request.param}.opus"
    sound = soundfile.read(path, frames=SECONDS * RATE, dtype="float32")[0]
    sound[5 * RATE : 11 * RATE // 2] = 0
    return sound


@pytest.fixture(scope="module")
def whole(speech):
    return heard(Phones(), [speech])


def test_the_frames_are_those_of_the_network_in_speech(speech, whole):
    """All of them and no others, whoever asks: neither shifted nor doubled at any border."""
    stream = shipped_units().stream()
    units = np.concatenate([stream.push(speech), stream.flush()])
    frames = whole.spans[:, 0] // 2
    assert np.array_equal(whole.values, units[frames])
    spoken = VoiceActivity().process(speech)[: 2 * units.size].reshape(-1, 2)
    assert np.array_equal(frames, np.flatnonzero(spoken.all(axis=1)))
    assert 200 < frames.size < 50 * (SECONDS - 0.3)  # the silence is not counted


def test_silence_and_noise_do_not_count():
    noise = np.random.default_rng(0).standard_normal(10 * RATE).astype(np.float32)
    assert not heard(Phones(), [0 * noise]).values.size
    # a moment passes before voice activity takes noise for noise
    assert heard(Phones(), [0.003 * noise]).spans.max(initial=0) < 100


def golden_frames() -> dict[str, Any]:
    track = heard(Phones(), [babble(20, pause_seconds=0.3)])
    return {
        "network": Phones().spec.network,
        "ticks": track.ticks.tolist(),
        "begins": track.spans[:, 0].tolist(),
        "units": track.values.tolist(),
    }


def test_the_frames_are_the_golden_ones():
    golden, made = json.loads(GOLDEN.read_text()), golden_frames()
    assert golden["network"] == made["network"], "python -m tests.features.test_phones"
    assert golden["begins"] == made["begins"]
    assert golden["ticks"] == made["ticks"]
    same = np.equal(golden["units"], made["units"])
    assert same.mean() > 0.97  # other processors round otherwise: a code may be as near as another


NETWORK = UscNetwork(usc_weights(), "a" * 64)
SOUND = babble(40, pause_seconds=0.3)


def spans(track: Track) -> np.ndarray:
    assert track.spans is not None
    return track.spans


def test_the_tokens_of_speech_are_counted_and_no_others():
    feature, stream = Tokens(NETWORK), TokenStream(NETWORK)
    track = feature.process(SOUND), feature.flush()
    said = np.concatenate([stream.push(SOUND), stream.flush()])
    speech = VoiceActivity().process(SOUND[: said.size * 640])
    spoken = speech.reshape(-1, 4).all(axis=1)
    assert 0 < spoken.sum() < spoken.size
    assert np.array_equal(np.concatenate([part.values for part in track]), said[spoken])
    begins = np.concatenate([spans(part)[:, 0] for part in track])
    assert np.array_equal(begins, 4 * np.flatnonzero(spoken))


def test_noise_changes_tokens_and_nothing_else():
    plain, noisy, again = (
        Tokens(NETWORK, epsilon, whose).process(SOUND)
        for epsilon, whose in ((None, ()), (1.0, (7, "talk")), (1.0, (7, "talk")))
    )
    assert np.array_equal(plain.ticks, noisy.ticks)
    assert np.array_equal(spans(plain), spans(noisy))
    assert np.mean(plain.values == noisy.values) < 0.5
    assert np.array_equal(noisy.values, again.values)


SAID = """
M IH S T ER K W IH L T ER IH Z DH IY AH P AA S AH L AH V DH AH M IH D AH L K L AE S AH Z AE N D W IY
AA R G L AE D T AH W EH L K AH M HH IH Z G AA S P AH L
N AO R IH Z M IH S T ER K W IH L T ER Z M AE N ER L EH S IH N T R AH S T IH NG DH AE N HH IH Z M AE
T ER
"""
"""The beginning of dev-clean/1272/128104: mister Quilter is the apostle of the middle classes."""


def alike(found, said=SAID):
    names = [each.phone for each in found]
    return difflib.SequenceMatcher(None, said.split(), names, autojunk=False).ratio()


@pytest.mark.slow
def test_recognised_phones_are_those_of_the_text(shared):
    path = shared / "speech" / "dev-clean" / "1272" / "128104.opus"
    sound = soundfile.read(path, frames=round(10.6 * RATE), dtype="float32")[0]
    found = recognise_phones(sound)
    rng = np.random.default_rng(0)
    other = dict(zip(PHONES, rng.permutation(PHONES), strict=True))
    # more than by chance: a wrong order of the classes would not pass
    chance = alike([each._replace(phone=other[each.phone]) for each in found])
    assert alike(found) > max(0.7, 2 * chance)
    assert all(0 <= each.begin < each.end <= 10.6 for each in found)
    assert all(a.end <= b.begin for a, b in pairwise(found))
    double = recognise_phones(soxr.resample(sound, RATE, 2 * RATE), 2 * RATE)
    assert alike(double, " ".join(each.phone for each in found)) > 0.9


@pytest.mark.parametrize("samples", [np.zeros((9, 2)), np.array([np.nan]), np.array(1.0)])
def test_what_is_no_sound_is_refused_and_silence_holds_no_phones(samples):
    with pytest.raises(UsageError, match="one channel"):
        recognise_phones(samples)
    assert recognise_phones(np.zeros(RATE)) == recognise_phones(np.zeros(0)) == []


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(golden_frames()) + "\n")
