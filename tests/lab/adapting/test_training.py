"""What is learnt from: stretches of protected speech, and what changes within a voice."""

import numpy as np
import soundfile

from monitor.corpus import Recording
from monitor.errors import SourceError
from monitor.lab.adapting.training import (
    SpeechDraws,
    compute_bands,
    decode_mono,
    draw_speech,
    extract_speech,
    fit_normalisation,
)
from monitor.networks.layers import RATE
from monitor.networks.voice import BANDS
from monitor.types import FloatArray
from tests.lab.adapting.conftest import played

HOW = SpeechDraws(draws=4, seconds=3.0, speeds=(1.0, 0.9))


def faded(samples: FloatArray, rate: int, name: str, speaker: str) -> FloatArray:
    return np.asarray(samples * np.geomspace(1, 0.5, samples.size), np.float32)


def equal(one: tuple[FloatArray, ...], other: tuple[FloatArray, ...]) -> bool:
    return len(one) == len(other) and all(map(np.array_equal, one, other))


def test_every_speaker_is_one_voice_at_each_speed(voices):
    found = draw_speech([voices[:3]], played, HOW)
    assert found.names == ("00", "00 x0.9", "01", "01 x0.9", "02", "02 x0.9")
    assert np.bincount(found.voices).tolist() == [2] * 6
    assert {each.shape[1] for each in found.bands} == {BANDS}
    assert {each.dtype for each in found.bands} == {np.dtype(np.float16)}
    assert found.problems == ()
    found = draw_speech([voices[:2], voices[1:2]], played, HOW)  # speakers of two corpora are two
    assert found.names == ("00", "00 x0.9", "01", "01 x0.9", "01", "01 x0.9")
    assert found.corpora.tolist() == [0, 0, 0, 0, 1, 1]


def test_what_is_drawn_depends_on_the_seed_and_not_on_who_is_beside(voices):
    alone = draw_speech([voices[1:2]], played, HOW)
    among = draw_speech([voices[:3]], played, HOW)
    assert equal(alone.bands, among.bands[4:8])
    assert equal(draw_speech([voices[1:2]], played, HOW, jobs=2).bands, alone.bands)
    other = SpeechDraws(HOW.draws, HOW.seconds, HOW.speeds, seed=1)
    assert not equal(draw_speech([voices[1:2]], played, other).bands, alone.bands)


def test_each_stretch_has_a_draw_of_its_own(voices):
    names = []

    def noting(samples: FloatArray, rate: int, name: str, speaker: str) -> FloatArray:
        names.append((name, speaker))
        return samples

    draw_speech([voices[:2]], noting, HOW)
    assert len({name for name, _ in names}) == len(names) == 8
    assert len({speaker for _, speaker in names}) == 8  # what is drawn by speaker, too


def test_the_anonymiser_is_heard_and_pauses_are_not(voices, tmp_path):
    sound, _ = decode_mono(voices[0].path)
    path = tmp_path / "paused.wav"
    soundfile.write(path, np.concatenate([sound[: 2 * RATE], np.zeros(2 * RATE)]), RATE)
    paused = Recording("a", "1", path)
    found = draw_speech([[paused]], faded, SpeechDraws(1, 4.0, (1.0,)))
    assert 150 < len(found.bands[0]) < 240
    wide = np.repeat(sound[: 2 * RATE], 3)
    soundfile.write(path, np.stack([wide, wide], axis=1), 48_000)  # any rate, two channels
    samples, rate = decode_mono(path)
    assert (rate, samples.shape) == (48_000, (6 * RATE,))
    assert 0.6 * 2 * RATE < extract_speech(samples, rate).size <= 2 * RATE
    whole = draw_speech([[voices[0]]], faded, SpeechDraws(1, sound.size / RATE, (1.0,)))
    assert np.array_equal(
        whole.bands[0], compute_bands(extract_speech(faded(sound, RATE, "", ""), RATE))
    )
    assert np.array_equal(whole.clear[0], compute_bands(extract_speech(sound, RATE)))
    assert not equal(whole.bands, whole.clear)


def test_a_broken_file_and_a_failing_anonymiser_are_named_and_the_rest_is_used(voices, tmp_path):
    broken = tmp_path / "broken.wav"
    broken.write_bytes(b"RIFF")
    found = draw_speech([[*voices[:1], Recording("ann", "1", broken)]], played, HOW)
    assert found.names == ("00", "00 x0.9")
    assert len(found.problems) == 1
    assert "broken.wav" in found.problems[0]

    def fails(samples: FloatArray, rate: int, name: str, speaker: str) -> FloatArray:
        raise SourceError("my-anonymiser failed with exit status 1")

    found = draw_speech([voices[:1]], fails, HOW)
    assert (found.names, set(found.problems)) == ((), {"my-anonymiser failed with exit status 1"})


def alike(embeddings: np.ndarray) -> tuple[float, float]:
    """The mean cosine of crops of one voice, and of two."""
    units = embeddings / np.linalg.norm(embeddings, axis=2, keepdims=True)
    cosines = np.einsum("vcm,wdm->vwcd", units, units)
    same = np.eye(len(units), dtype=bool)
    return float(cosines[same].mean()), float(cosines[~same].mean())


def test_what_changes_within_a_voice_counts_less():
    generator = np.random.default_rng(0)
    voices = generator.standard_normal((60, 1, 8))
    apart = generator.standard_normal((60, 20, 8)) * [4, 1, 1, 1, 1, 1, 1, 0.2]
    embeddings, corpora = voices + apart + 5, np.arange(60) % 2
    turn, centre = fit_normalisation(
        embeddings.reshape(-1, 8), np.repeat(np.arange(60), 20), corpora
    )
    own, other = alike(embeddings)
    own_turned, other_turned = alike((embeddings - centre) @ turn)
    assert own_turned - other_turned > own - other + 0.2
    left = (apart - apart.mean(axis=1, keepdims=True)) @ turn
    spread = np.sqrt(np.mean(left**2, axis=(0, 1)))
    assert spread.max() / spread.min() < 6  # it was 20
    same, _ = fit_normalisation(np.ones((4, 8)), np.arange(4) // 2, np.zeros(2, int))
    assert np.isfinite(same).all()
