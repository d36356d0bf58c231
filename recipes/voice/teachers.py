"""How well do two teachers distinguish people, alone and jointly? A student can hardly do better.

    python -m recipes.voice.teachers ../shared/speech VOICES CALLS --ecapa DIR --also FILE.onnx

CALLS is the folder ``audio_data`` of klchang/SpeakerRecognition: digits that 83 people read over
the telephone. It states no licence, so keep none of it. Templates have up to 12 s without pauses
(readers 9 s), and tests have 9 s or 3 s. Embeddings of windows of 3 s are averaged, then centred by
the mean of the templates. ``together`` is the sum of both teachers' cosines. None of these people
trained a network. The French part of VOICES is excluded, because it judges releases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import soundfile
import soxr

from monitor.features.own_network import Network, network_bytes
from monitor.maths.scores import unit_vectors
from monitor.networks.layers import RATE
from monitor.networks.voice import VoiceNetwork, shipped
from monitor.types import FloatArray, IntArray
from recipes.stages import stage
from recipes.voice.clips import people
from recipes.voice.corpus import recordings
from recipes.voice.teacher import read_teacher
from recipes.voice.world import WINDOW, Embed, conditions, row

_TEMPLATE, _TEST = 4, 3
_READ = 20.0  # seconds of a reader's template with pauses: at least three windows of speech
_QUIET, _AROUND = 1e-3, 21  # fraction of loud power; hops of 10 ms kept around a loud one
_SENTENCES = 60.0

Trials = list[tuple[FloatArray, list[FloatArray]]]
"""Per person, windows (n, 48000) of a template, and of each test."""


def main() -> None:
    parser = stage("Judge two teachers, alone and together.", "speech", "voices")
    parser.add_argument("calls", type=Path, help="audio_data of klchang/SpeakerRecognition")
    parser.add_argument("--ecapa", type=Path, required=True)
    parser.add_argument("--also", type=Path, required=True, metavar="FILE.onnx")
    parser.add_argument(
        "--weights", type=Path, nargs="*", default=[], help="further students' weights"
    )
    given = parser.parse_args()
    networks: dict[str, Embed] = {
        "ecapa": VoiceNetwork(read_teacher(given.ecapa)).embed,
        "also": Network(network_bytes(given.also), given.also.name).embed,
        "ships": shipped().embed,
        **{path.stem: VoiceNetwork.load(path).embed for path in given.weights},
    }
    for name, trials in _conditions(given.speech, given.voices, given.calls):
        embedded = {network: _embedded(trials, embed) for network, embed in networks.items()}
        for seconds, parts in ((3, True), (9, False)):
            scores = {network: _scores(each, parts) for network, each in embedded.items()}
            target = scores["ecapa"][1]
            judged = {network: each for network, (each, _) in scores.items()}
            judged["together"] = judged["ecapa"] + judged["also"]
            for network, each in judged.items():
                found = row(f"{name}, {seconds} s, {network}", each, target,
                            [str(column) for column in range(each.shape[1])])  # fmt: skip
                print(f"{found['row']:32} N {found['n']:3} tests {found['tests']:4}  "
                      f"first {found['first']:6.1%}  EER {found['eer']:6.2%}")  # fmt: skip


def _conditions(speech: Path, voices: Path, calls: Path) -> Iterator[tuple[str, Trials]]:
    yield "calls", [_caller(folder) for folder in sorted(calls.glob("*/*_*"))]
    yield "own microphones", _microphones(voices)
    telephone = conditions(speech)["telephone"]
    yield "telephone, simulated", _readers(speech, lambda sound: telephone(sound, 0))
    yield "readers", _readers(speech, lambda sound: sound)


def _caller(folder: Path) -> tuple[FloatArray, list[FloatArray]]:
    """Return windows of the first line of digits, which is the longest, and of the last two."""
    longest, _, _, *tests = (_read_speech(path) for path in sorted(folder.glob("*.wav")))
    return _windows(longest, _TEMPLATE), [_windows(test, _TEST) for test in reversed(tests)]


def _microphones(voices: Path) -> Trials:
    trials = []
    for each in people(voices):
        sessions = sorted(each.clips.values(), key=lambda paths: -len(paths))
        if each.role == "judge" and sessions[0][0].relative_to(voices).parts[0] != "fr":
            rest = sorted(path for session in sessions[1:] for path in session)
            template, test = (np.concatenate([*map(_read_speech, paths)])
                              for paths in (sorted(sessions[0]), rest))  # fmt: skip
            trials.append((_windows(template, _TEMPLATE), [_windows(test, _TEST)]))
    return trials


def _readers(speech: Path, change: Callable[[FloatArray], FloatArray]) -> Trials:
    by_reader: dict[str, list[Path]] = {}
    listed = [each for each in recordings(speech, speech.parent / "nonnative")
              if each.role in ("choose", "report")]  # fmt: skip
    for each in sorted(listed, key=lambda each: -each.seconds):
        by_reader.setdefault(each.speaker, []).append(each.path)
    trials = []
    for _, paths in sorted(by_reader.items()):
        windows = [_windows(_read_speech(paths[0], _READ), _TEST)]
        for path in paths[1:2]:  # two tests of another chapter
            spoken = _windows(_read_speech(path), 8)
            windows += [spoken[at : at + _TEST] for at in (0, 5) if len(spoken) >= at + _TEST]
        template, *tests = (np.stack([change(each) for each in some]) for some in windows)
        trials.append((template, tests))
    return trials


def _read_speech(path: Path, seconds: float = _SENTENCES) -> FloatArray:
    """Read the first seconds of a recording at 16 kHz, without pauses."""
    sound, rate = soundfile.read(path, dtype="float32")
    if rate != RATE:
        sound = np.asarray(soxr.resample(sound, rate, RATE), np.float32)
    hops = sound[: round(seconds * RATE)]
    hops = hops[: len(hops) // 160 * 160].reshape(-1, 160)
    power = np.mean(hops**2, axis=1)
    loud = power > max(1e-9, np.quantile(power, 0.95) * _QUIET)
    return np.asarray(hops[np.convolve(loud, np.ones(_AROUND), "same") > 0].ravel())


def _windows(sound: FloatArray, most: int) -> FloatArray:
    count = min(most, len(sound) // WINDOW)
    if not count:  # repeat a short sound
        return np.resize(sound, (int(len(sound) > RATE), WINDOW))
    return sound[: count * WINDOW].reshape(count, WINDOW)


def _embedded(trials: Trials, embed: Embed) -> Trials:
    """Return unit embeddings of all windows."""
    return [
        (unit_vectors(embed(template)), [unit_vectors(embed(test)) for test in tests if len(test)])
        for template, tests in trials
        if len(template)
    ]


def _scores(embedded: Trials, parts: bool) -> tuple[FloatArray, IntArray]:
    """Return centred cosines of tests, or of their windows, with templates; and their speakers."""
    templates = unit_vectors(np.stack([template.mean(axis=0) for template, _ in embedded]))
    tests = [
        (each, column)
        for column, (_, tests) in enumerate(embedded)
        for test in tests
        for each in (test if parts else [test.mean(axis=0)])
    ]
    centre = templates.mean(axis=0)
    test_vectors = unit_vectors(np.stack([each for each, _ in tests])) - centre
    return unit_vectors(test_vectors) @ unit_vectors(templates - centre).T, np.array(
        [column for _, column in tests]
    )


if __name__ == "__main__":
    main()
