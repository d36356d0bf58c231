from __future__ import annotations

import difflib
import signal
from pathlib import Path

import numpy as np
import pocketsphinx
import pytest
import soundfile
import soxr

from monitor.errors import UsageError
from monitor.features import phones as module
from monitor.features.decoding import PHONES, phone_tokens
from monitor.features.extractor import Extractor
from monitor.features.pauses import Pauses
from monitor.features.phones import Phones
from monitor.features.tracks import join_tracks
from monitor.types import Block, Track
from tests.contracts import babble

RATE = 16_000
SECONDS = 12
READERS = ("dev-clean/1272/128104", "dev-clean/1993/147966")


def heard(feature, parts):
    whole = feature.process(np.empty(0, np.float32))
    for part in parts:
        whole = join_tracks(whole, feature.process(part))
    return join_tracks(whole, feature.flush())


def assert_same(left, right):
    assert np.array_equal(left.ticks, right.ticks)
    assert np.array_equal(left.values, right.values)
    assert np.array_equal(left.spans, right.spans)


@pytest.fixture(scope="module", params=READERS)
def reader(shared: Path, request) -> Path:
    return shared / "speech" / f"{request.param}.opus"


@pytest.fixture(scope="module")
def speech(reader):
    """The beginning of a real reader."""
    return soundfile.read(reader, frames=SECONDS * RATE, dtype="float32")[0]


@pytest.fixture(scope="module")
def whole(speech):
    return heard(Phones(), [speech])


def test_real_speech_in_any_cutting(speech, whole):
    cuts = np.sort(np.random.default_rng(0).integers(0, speech.size, 200))
    assert_same(heard(Phones(), np.split(speech, cuts)), whole)


def test_tokens_lie_in_the_audio_one_after_the_other(whole):
    begins, ends = whole.spans.T
    assert (begins < ends).all()
    assert (ends[:-1] <= begins[1:]).all()
    assert (ends <= whole.ticks).all()
    assert begins[0] >= 0
    assert whole.ticks[-1] <= 100 * SECONDS
    assert (np.diff(whole.ticks) >= 0).all()
    assert (whole.ticks - begins <= 800).all()  # the latency
    assert 0.08 < np.diff(whole.spans).mean() / 100 < 0.13  # what one stands for without spans


def test_no_token_is_lost(speech, whole):
    """Against a decoder pruned as recommended; one that dies gives one phone several seconds."""
    assert np.diff(whole.spans).max() < 100
    model = Path(pocketsphinx.get_model_path()) / "en-us"
    config = pocketsphinx.Config(
        hmm=str(model / "en-us"),
        allphone=str(model / "en-us-phone.lm.bin"),
        lw=2.0,
        beam=1e-20,
        pbeam=1e-20,
        loglevel="FATAL",
    )
    decoder = pocketsphinx.Decoder(config)
    bare = []
    pauses = Pauses()
    for utterance in pauses.push(speech) + pauses.flush():
        decoder.reinit_feat()
        decoder.start_utt()
        decoder.process_raw(utterance.samples.tobytes(), full_utt=True)
        decoder.end_utt()
        bare += [segment.word for segment in decoder.seg() if segment.word in PHONES]
    assert bare == [PHONES[value] for value in whole.values]


def test_they_are_the_phones_of_the_text(reader, whole):
    """More than by chance: a wrong order of the units would not pass."""
    lexicon: dict[str, list[str]] = {}
    path = Path(pocketsphinx.get_model_path()) / "en-us" / "cmudict-en-us.dict"
    for line in path.read_text().splitlines():
        word, *sounds = line.split()
        lexicon.setdefault(word, sounds)
    rows = [row.split("\t") for row in reader.with_suffix(".tsv").read_text().splitlines()[1:]]
    rows = [row for row in rows if float(row[1]) <= SECONDS]
    spoken = [
        sound
        for *_, text in rows
        for word in text.lower().split()
        for sound in lexicon.get(word, ())
    ]
    found = whole.values[whole.spans[:, 0] < 100 * float(rows[-1][1])]
    right, chance = (
        difflib.SequenceMatcher(
            None, spoken, [str(names[v]) for v in found], autojunk=False
        ).ratio()
        for names in (PHONES, np.random.default_rng(0).permutation(PHONES))
    )
    assert right > 0.35
    assert right > 2 * chance


def test_what_was_decoded_before_does_not_matter():
    first, second = (np.asarray(babble(n) * 32767, np.int16) for n in (12, 7))
    alone = phone_tokens(first)
    phone_tokens(second)
    assert phone_tokens(first) == alone
    assert len(alone) > 6
    assert phone_tokens(first[:0]) == phone_tokens(first[:50]) == []


def test_silence_and_noise_give_no_tokens():
    noise = np.random.default_rng(0).standard_normal(10 * RATE).astype(np.float32)
    assert not heard(Phones(), [0 * noise]).values.size
    assert not heard(Phones(), [0.003 * noise]).values.size
    # half a second passes before voice activity takes loud noise for noise
    loud = heard(Phones(), [0.1 * noise])
    assert loud.values.size <= 3
    assert loud.ticks.max(initial=0) < 100


def test_silence_is_not_decoded(monkeypatch):
    decoded = []

    def decode(samples):
        decoded.append(samples.size)
        return []

    monkeypatch.setattr(module, "phone_tokens", decode)
    quiet = np.zeros(30 * RATE, np.float32)
    heard(Phones(), [quiet, babble(10), quiet])
    assert RATE <= sum(decoded) <= 1.4 * RATE


def test_what_is_skipped_is_not_decoded(monkeypatch):
    sound = babble(8, pause_seconds=0.4, repeats=4)
    whole = heard(Phones(), [sound])
    ends = np.unique(whole.ticks)
    assert ends.size == 4
    decoded = []

    def decode(samples):
        decoded.append(samples.size)
        return phone_tokens(samples)

    monkeypatch.setattr(module, "phone_tokens", decode)
    feature = Phones()
    feature.skip_to(int(ends[1]))
    late = whole.ticks > ends[1]
    rest = Track(whole.ticks[late], whole.values[late], whole.spans[late])
    assert_same(heard(feature, np.array_split(sound, 9)), rest)
    assert len(decoded) == 2
    feature.reset()
    assert_same(heard(feature, [sound]), whole)


def test_workers_change_nothing():
    sound = babble(8, pause_seconds=0.4, repeats=3)
    assert_same(heard(Phones(workers=2), [sound]), heard(Phones(), [sound]))
    with pytest.raises(UsageError, match="workers=0"):
        Phones(workers=0)


def test_telephone_speech(speech, whole):
    """8 kHz comes up to 16 kHz on its way in; most of the consonants' hiss is not there."""
    extractor = Extractor([Phones()])
    narrow = soxr.resample(speech, RATE, 8000)
    runs = [extractor.process(Block(part, 8000)) for part in np.array_split(narrow, 7)]
    runs.append(extractor.flush())
    assert sum(run.speech.size for run in runs) == 100 * SECONDS
    track = runs[0].tracks["phones"]
    for run in runs[1:]:
        track = join_tracks(track, run.tracks["phones"])
    assert track.values.size == pytest.approx(whole.values.size, rel=0.15)
    assert track.spans is not None
    assert track.spans.max() <= 100 * SECONDS
    assert len(np.unique(track.values)) > 15


def test_an_interrupt_leaves_the_decoder_usable():
    """Ctrl-C in a notebook comes in the middle of an utterance."""
    sound = (babble(40) * 20_000).astype(np.int16)
    expected = phone_tokens(sound)

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012
            for _ in range(1000):
                signal.setitimer(signal.ITIMER_REAL, 0.02)
                phone_tokens(sound)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert phone_tokens(sound) == expected
