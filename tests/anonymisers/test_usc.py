"""A voice made anew from tokens, by a codec with made-up weights, and sound from mel energies."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.anonymisers.filters import Utterance
from monitor.anonymisers.usc import GriffinLim, Usc
from monitor.networks.layers import FLOOR, HOP, WIDTH, log_mel
from monitor.networks.usc import TokenStream, UscNetwork
from tests.sounds import RATE, synthetic
from tests.usc_weights import usc_weights

NETWORK = UscNetwork(usc_weights())
VOICE = synthetic(1.6)


def usc(epsilon=None, rate=RATE, **more):
    return Usc(epsilon, Utterance(rate, **{"name": "talk", **more}), NETWORK)


def made(anonymiser, *parts):
    return np.concatenate([*map(anonymiser.process, parts), anonymiser.flush()])


@pytest.mark.parametrize("epsilon", [None, 3.0])
@settings(max_examples=4)
@given(cuts=st.lists(st.integers(0, VOICE.size), max_size=6))
def test_any_cutting_at_another_rate_gives_the_same_samples(epsilon, cuts):
    parts = np.split(VOICE, sorted(cuts))
    assert np.array_equal(made(usc(epsilon, 44_100), *parts), made(usc(epsilon, 44_100), VOICE))


def test_nothing_passes_but_tokens():
    """Two sounds with the same tokens are the same sound afterwards, to the last bit."""
    other = VOICE * np.float32(1 + 1e-6)
    said = [TokenStream(NETWORK) for _ in range(2)]
    tokens = [
        np.concatenate([s.push(v), s.flush()]) for s, v in zip(said, (VOICE, other), strict=True)
    ]
    assert np.array_equal(tokens[0], tokens[1])
    assert not np.array_equal(VOICE, other)
    assert np.array_equal(made(usc(), VOICE), made(usc(), other))


def test_noise_has_an_epsilon_and_no_noise_has_none():
    assert usc().declares is None
    declared = usc(3.0).declares
    assert (declared.mechanism, declared.epsilon, declared.window_seconds) == ("usc:3", 3.0, 0.04)
    assert declared.ahead_seconds * 100 == pytest.approx(NETWORK.decoder.late + 12)


def test_as_many_tokens_are_declared_as_sound_depends_on():
    """Change a token beyond those that are counted: what came out by then stays."""
    declared, books = usc(3.0).declares, NETWORK.books
    stream = TokenStream(NETWORK)
    tokens = np.concatenate([stream.push(VOICE), stream.flush()])

    def sound(tokens):
        anonymiser = usc()
        said = anonymiser._latents.push(books.latents(tokens[:, None]))
        rest = anonymiser._latents.flush()
        return np.concatenate(
            [*map(anonymiser._sound.push, (said, rest)), anonymiser._sound.flush()]
        )

    whole = sound(tokens)
    for seconds in (0.3, 0.5, 0.77):
        counted = declared.windows(seconds)
        other = tokens.copy()
        other[counted:] = (other[counted:] + 7) % books.size
        assert np.array_equal(*(each[: round(seconds * RATE)] for each in (whole, sound(other))))
        assert not np.array_equal(whole, sound(other))


BANDS = 80
SAID = log_mel(VOICE[:RATE], BANDS)


def heard(*parts: np.ndarray) -> np.ndarray:
    stream = GriffinLim(BANDS)
    stream.push(SAID[::-1])
    stream.flush()  # forgets all
    return np.concatenate([*map(stream.push, parts), stream.flush()])


WHOLE = heard(SAID)


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 8, 12, 13])
def test_frames_become_as_much_sound_as_they_cover(count):
    assert heard(SAID[:count]).size == (count and (count - 1) * HOP + WIDTH)


def error(sound: np.ndarray, said: np.ndarray) -> float:
    """Nepers of energy, where there is some."""
    return float(np.abs(log_mel(sound, BANDS) - said)[said > np.log(1e3 * FLOOR)].mean())


def test_a_voice_has_the_energies_that_were_asked_for():
    assert error(WHOLE, SAID) < 0.25
    assert error(0.5 * WHOLE, SAID) > 1.2  # such an error is heard
    assert not heard(log_mel(np.zeros(RATE), BANDS)).any()  # silence stays silence
