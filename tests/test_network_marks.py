"""What two networks made never meets: templates, rank models, frames, sums of a ledger."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from monitor.corpus import Corpus, Recording
from monitor.errors import SourceError, StoreError, UsageError
from monitor.features.embeddings import Voice, window_spec
from monitor.features.f0 import F0
from monitor.ledger.ledger import Ledger
from monitor.networks.voice import SHA256
from monitor.population.cohort import FeatureTemplates
from monitor.population.people import Speaker
from monitor.population.population import Population
from monitor.population.rank_model import RankModels
from monitor.run.pace import Timed
from monitor.sources.base import Chain
from monitor.sources.file import File
from monitor.sources.frames import FramesFile, write_frames
from monitor.stream.monitor import Monitor
from monitor.training.enrolling import enrol
from monitor.training.feature_extraction import FeatureExtractor
from monitor.training.frames_folder import ExtractionOptions
from monitor.types import Track
from tests.population.rank_models import some_rank_model
from tests.sounds import RATE, synthetic
from tests.stream.streams import run_through

OTHER = "ab" * 32
SIZE = Voice.spec.size


def population(network: str | None = SHA256, of_rank_model: str | None = SHA256) -> Population:
    """Three speakers with templates of the voice network's shape."""
    rng = np.random.default_rng(0)
    slices = rng.normal(size=(12, SIZE)).astype(np.float32)
    templates = FeatureTemplates(window_spec("voice", SIZE, network), slices)
    learnt = some_rank_model(
        ("voice",), similarities=("embedding-cosine",), networks=(of_rank_model,)
    )
    return Population(
        [Speaker(name) for name in ("ann", "bob", "cy")],
        np.array([0, 4, 8, 12]),
        {"voice": templates},
        RankModels([learnt]),
    )


def frames(path: Path, network: str | None = SHA256) -> Path:
    """Eighteen seconds of speech as six windows."""
    values = np.random.default_rng(1).normal(size=(6, SIZE)).astype(np.float32)
    track = Track(np.arange(1, 7) * 300, values)
    speech, marks = np.ones(1800, np.bool_), {"voice": network}
    write_frames(path, speech, {"voice": track}, {}, {"voice": 3.0}, networks=marks)
    return path


@pytest.fixture
def audio(tmp_path: Path) -> File:
    """Four seconds of a voice."""
    soundfile.write(tmp_path / "a.flac", synthetic(4.0, 120.0), RATE)
    return File(tmp_path / "a.flac")


def told(error: pytest.ExceptionInfo[Exception], *words: str) -> None:
    line = str(error.value)
    assert "\n" not in line
    for word in (*words, "cannot be compared", "again"):
        assert word in line


def test_a_store_keeps_the_marks(tmp_path):
    path = tmp_path / "us.npz"
    made = population()
    made.save(path)
    read = Population.load(path)
    assert read.specs["voice"].network == SHA256
    assert [each.networks for each in read.rank_models] == [(SHA256,)]
    assert read.fingerprint() == made.fingerprint() != population(OTHER, OTHER).fingerprint()
    with pytest.raises(UsageError, match="the network of voice is not a sha256"):
        population("no sha256", None)
    with pytest.raises(StoreError) as caught:
        Monitor(population(SHA256, OTHER), ["voice"])
    told(caught, "voice of the rank model is by network abababababab", "the templates")


@pytest.mark.parametrize("network", [None, OTHER])
def test_templates_of_another_network_are_refused(network, tmp_path, audio):
    theirs = population(network, network)
    by = "an unknown network" if network is None else "network abababababab"
    block = next(iter(audio))
    others = Population([Speaker("eve")], np.array([0, 12]), theirs.features)
    voice = f"voice of this program is by network {SHA256[:12]}"
    refused: list[tuple[Callable[[], object], tuple[str, ...]]] = [
        (lambda: Monitor(theirs, ["voice"]).front_end.make(), (voice, by, "monitor enrol")),
        (lambda: Monitor(theirs, ["voice"]).push(block), (by,)),  # without asking first as well
        (lambda: Monitor(theirs, [Voice()]), ("this feature",)),
        (lambda: Monitor(theirs, ["voice"]).front_end.use([Timed(Voice())]), ("this feature",)),
        (
            lambda: Monitor(theirs, ["voice"]).front_end.check(
                FramesFile(frames(tmp_path / "a.npz"))
            ),
            ("voice of a.npz",),
        ),
        (lambda: population().joined(others), ("the new templates", "the others")),
    ]
    for call, words in refused:
        with pytest.raises(UsageError) as caught:
            call()
        told(caught, *words)


def test_what_goes_together_is_heard(tmp_path, audio):
    own = FramesFile(frames(tmp_path / "own.npz"))
    assert own.stream_info.tracks["voice"].network == SHA256
    monitor = Monitor(population(), ["voice"])
    monitor.front_end.check(own)
    assert len(list(monitor.stream(own))) == 18
    monitor = Monitor(population(), ["voice"])
    monitor.front_end.make()
    assert list(monitor.stream(audio))
    # frames of somebody else's recogniser have no mark, and templates of them neither
    theirs = FramesFile(frames(tmp_path / "theirs.npz", None))
    Monitor(population(None, None), ["voice"]).front_end.check(theirs)


def test_frames_of_two_networks_are_not_enrolled_or_chained(tmp_path):
    mine, theirs = frames(tmp_path / "1.npz"), frames(tmp_path / "2.npz", OTHER)
    listener = FeatureExtractor()
    listener.extract(mine)
    assert listener.specs["voice"].network == SHA256
    with pytest.raises(SourceError) as caught:
        listener.extract(theirs)
    told(caught, "voice of 2.npz is by network abababababab")
    with pytest.raises(UsageError, match="made by different networks: extract both again"):
        Chain([FramesFile(mine), FramesFile(theirs)])
    assert Chain([FramesFile(mine)]).stream_info.tracks["voice"].network == SHA256
    made = enrol(Corpus((Recording("ann", "1", mine), Recording("bob", "1", theirs)), ()))
    assert made.population.names == ("ann",)
    assert made.population.specs["voice"].network == SHA256
    noted = ExtractionOptions(("f0", "voice")).note([F0(), Voice()])["features"]
    assert noted == {"f0": ["histogram", 104, 0.01], "voice": ["embedding", SIZE, 3.0, SHA256]}


def test_a_ledger_does_not_add_up_two_networks(tmp_path):
    monitor = Monitor(population(), ["voice"], "ann")
    run_through(FramesFile(frames(tmp_path / "ann.npz")), monitor, ledger=tmp_path / "l.db")
    specs = population().specs
    with Ledger(tmp_path / "l.db") as ledger:
        assert ledger.carried("ann", specs).totals is not None
        theirs = {"voice": replace(specs["voice"], network=OTHER)}
        with pytest.raises(StoreError, match=r"session 1 in l\.db is by .* Use another ledger"):
            ledger.carried("ann", theirs)
