"""The command line in this process, as a process of its own, and on a terminal; things to hear."""

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from benchmarks.simulation import Simulation, write_corpus
from monitor.cli import main
from monitor.corpus import find
from monitor.features.f0 import F0
from monitor.features.style import Style
from monitor.population.cohort import FeatureTemplates
from monitor.population.people import Speaker
from monitor.population.population import Population
from monitor.population.rank_model import RankModels
from monitor.sources.frames import write_frames
from monitor.training import fitted
from monitor.training.calibrating import CalibrationSettings, calibrate
from monitor.training.enrolling import enrol
from monitor.training.stream_maxima import with_maxima
from monitor.training.voices import collect
from tests.lab.attacks.conftest import corpora  # noqa: F401  a fixture
from tests.population.rank_models import some_rank_model
from tests.settings import configured
from tests.sounds import RATE, synthetic
from tests.stream.streams import heard_by_both, run_reporter, two_features, with_evidence


@dataclass(frozen=True)
class Result:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def readings(self) -> list[dict[str, Any]]:
        return [record for record in self.records if record["type"] == "reading"]

    @property
    def complaint(self) -> str:
        """The one line that says what is wrong."""
        assert "Traceback" not in self.err
        told = [line for line in self.err.splitlines() if line.startswith("monitor: ")]
        (line,) = [line for line in told if not line.startswith("monitor: note: bits apply only")]
        assert self.code == 4 or self.err.endswith(f"{line}\n")
        return line


@pytest.fixture
def run(capsysbinary, tmp_path_factory) -> Callable[..., Result]:
    """The command line within this process; mappings among the arguments are settings."""
    folder = tmp_path_factory.mktemp("settings")

    def run(*arguments: object) -> Result:
        capsysbinary.readouterr()
        with pytest.raises(SystemExit) as left:
            main(configured(arguments, folder))
        out, err = capsysbinary.readouterr()
        return Result(int(left.value.code or 0), out.decode(), err.decode())

    return run


@pytest.fixture
def command() -> list[str]:
    """How to start the command line as a process."""
    return [sys.executable, "-m", "monitor"]


@pytest.fixture
def terminal(command, tmp_path_factory) -> Callable[..., tuple[int, str, str]]:
    """The command line with stdout on a terminal: exit status, what it shows, stderr."""
    folder = tmp_path_factory.mktemp("settings")

    def run(
        *arguments: object, columns: int = 100, both: bool = False, encoding: str = "utf-8"
    ) -> tuple[int, str, str]:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
        environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")}
        process = subprocess.Popen(
            [*command, *configured(arguments, folder)],
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs if both else subprocess.PIPE,
            env={**environment, "TERM": "xterm", "PYTHONIOENCODING": encoding},
        )
        os.close(theirs)
        shown = b""
        while True:
            try:
                data = os.read(ours, 65536)
            except OSError:  # how Linux says that the other side is closed
                break
            if not data:
                break
            shown += data
        err = process.stderr.read().decode() if process.stderr is not None else ""
        code = process.wait()
        os.close(ours)
        if process.stderr is not None:
            process.stderr.close()
        return code, shown.decode().replace("\r\n", "\n"), err

    return run


@pytest.fixture(scope="session")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of 12 simulated speakers in two sessions each, as frames."""
    folder = tmp_path_factory.mktemp("corpus") / "people"
    write_corpus(folder, Simulation(14, 3), 12, 2, 50.0)
    return folder


@pytest.fixture(scope="session")
def population(people: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Those speakers enrolled (from their first session only) and calibrated; not to be changed."""
    path = tmp_path_factory.mktemp("population") / "us.npz"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitted, "LOSSES", ("LL",))
        made = enrol(find(people), seconds=20.0).population
        voices, specs, _ = collect(find(people))
        rank_models = calibrate(
            voices,
            specs,
            CalibrationSettings(
                lengths=[1, 5, 20],
                template_lengths=[20],
                replicates=40,
                trials=3,
                prior=None,
                cohort=None,
            ),
        )
    made.calibrated(rank_models).save(path)
    return path


@pytest.fixture(scope="session")
def talk(people: Path) -> Path:
    """Frames of speaker 000003 of that corpus, from a session that was not enrolled."""
    return people / "000003" / "s1.npz"


@pytest.fixture(scope="session")
def known(population: Path, people: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That population, which has heard how high others' streams get."""
    path = tmp_path_factory.mktemp("known") / "us.npz"
    with_maxima(Population.load(population), collect(find(people))[0]).save(path)
    return path


@pytest.fixture(scope="session")
def crowds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A talk in two features, and six people: with evidence, with more of it, and without."""
    folder, heard = tmp_path_factory.mktemp("crowds"), heard_by_both()
    lengths = {"f0": 0.01, "timbre": 0.5}
    write_frames(folder / "talk.npz", heard.speech, heard.tracks, {"f0": 10, "timbre": 3}, lengths)
    with_evidence().save(folder / "told.npz")
    run_reporter().save(folder / "more.npz")
    two_features().save(folder / "plain.npz")
    return folder


@pytest.fixture(scope="session")
def worded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three people by pitch and style, with rank models of both."""
    rng = np.random.default_rng(3)
    features = {
        spec.name: FeatureTemplates(spec, rng.integers(1, 60, (12, spec.size)).astype(np.uint16))
        for spec in (F0.spec, Style().spec)
    }
    networks = {name: each.spec.network for name, each in features.items()}
    sets = [("f0",), ("style",), ("f0", "style")]
    rank_models = [
        some_rank_model(names, networks=tuple(map(networks.get, names))) for names in sets
    ]
    people = [Speaker(name) for name in ("ann", "bob", "cy")]
    path = tmp_path_factory.mktemp("worded") / "us.npz"
    Population(people, np.array([0, 4, 8, 12]), features, RankModels(rank_models)).save(path)
    return path


SAID = "well i do not know so it was the end of that and then we uh went to the other one"


def captions(path: Path, *speakers: str) -> Path:
    """Two captions of six seconds, each perhaps by a speaker of its own."""
    half = SAID.split()[:10], SAID.split()[10:]
    lines = ["WEBVTT"]
    for i, words in enumerate(half):
        voice = f"<v {speakers[i % len(speakers)]}>" if speakers else ""
        text = voice + " ".join(words)
        lines.append(f"\n00:00:{6 * i:02}.500 --> 00:00:{6 * i + 5:02}.500\n{text}")
    path.write_text("\n".join(lines))
    return path


@pytest.fixture(scope="session")
def scores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Scores of three systems (strong, weak, random) on the same speakers, and their labels."""
    path = tmp_path_factory.mktemp("scores")
    target = np.repeat(np.arange(20), 5)
    (path / "labels.txt").write_text("".join(f"{column}\n" for column in target))
    own = target[:, None] == np.arange(20)
    for seed, (name, lead) in enumerate([("strong", 3.0), ("weak", 1.0), ("random", 0.0)]):
        noise = np.random.default_rng(seed).normal(size=own.shape)
        np.save(path / f"{name}.npy", (noise + lead * own).astype(np.float32))
    return path


@pytest.fixture
def halves(tmp_path: Path) -> list[Path]:
    """Two further sessions of that speaker, 20 s each, as frames."""
    paths = [tmp_path / f"s{session}.npz" for session in (7, 8)]
    for session, path in zip((7, 8), paths, strict=True):
        made = Simulation(14, 3).frames(3, session, 20.0)
        write_frames(path, made.speech, made.tracks, {"f0": 104}, {"f0": 0.01})
    return paths


@pytest.fixture(scope="session")
def voice() -> Callable[..., np.ndarray]:
    """Samples at 16 kHz: ``voice(seconds, pitch=120.0, seed=0)``."""
    return synthetic


@pytest.fixture(scope="session")
def wav(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve seconds of it, 16 bits; not to be changed."""
    path = tmp_path_factory.mktemp("audio") / "talk.wav"
    soundfile.write(path, synthetic(12.0), RATE)
    return path


@pytest.fixture(scope="session")
def reference() -> Population:
    return Population.reference()


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Lets the install say of itself that it requires these lines, as its metadata would."""

    def say(*lines: str) -> None:
        folder = tmp_path / "site" / "speaker_disclosure_monitor-0.1.0.dist-info"
        folder.mkdir(parents=True)
        head = "Metadata-Version: 2.1\nName: speaker-disclosure-monitor\nVersion: 0.1.0\n"
        needs = "".join(f"Requires-Dist: {line}\n" for line in lines)
        (folder / "METADATA").write_text(head + needs)
        monkeypatch.syspath_prepend(folder.parent)

    return say
