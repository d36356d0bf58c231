"""monitor score, and monitor evaluate on what it writes."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from benchmarks.simulation import Simulation, write_corpus
from monitor.corpus import find
from monitor.lab.evaluation.input.score_file import ScoreFile
from monitor.training.voices import collect
from monitor.types import FloatArray
from tests.lab.evaluation.lists import speechbrain_eer

pytestmark = pytest.mark.slow

LENGTHS = ("--lengths", "3,10", "--template-lengths", "20", {"trials": "5"})
READERS = {"1272": "m", "1462": "f", "1673": "f", "174": "m", "1988": "f"}


@pytest.fixture
def scores(run, people, tmp_path):
    path = tmp_path / "scores.npz"
    done = run("score", people, "-o", path, *LENGTHS, "--jobs", "1")
    assert (done.code, done.out) == (0, "")
    assert "T=10 D=20 cross: 60 trials of 12 speakers against 12; f0" in done.err
    assert f"monitor evaluate {path}" in done.err
    return path


def figures(result):
    found = json.loads(result.out)
    return {s["name"]: s["figures"]["srd.idr"]["value"] for s in found["systems"]}, found


def test_from_a_folder_to_a_report_in_two_commands(run, scores, people, tmp_path):
    assert scores.stat().st_mode & 0o777 == 0o600
    values, _ = figures(run("evaluate", scores, "--json", "--replicates", 0))
    assert set(values) == {"T=3", "T=10"}
    assert 0.2 < values["T=3"] < values["T=10"] < 1.0
    one, _ = figures(run("evaluate", scores, "--choose", "T=10", "--json", "--replicates", 0))
    assert one == {"scores": values["T=10"]}
    again = tmp_path / "again.npz"
    assert run("score", people, "-o", again, *LENGTHS, "--jobs", "2").code == 0
    with np.load(scores) as mine, np.load(again) as other:  # processes change nothing
        assert mine.files == other.files
        assert all(np.array_equal(mine[name], other[name]) for name in mine.files)


def test_a_cohort_has_no_speaker_who_is_scored(run, people, population, tmp_path):
    path = tmp_path / "scores.npz"
    alone = run("score", people, "-o", path, {"cohort": population})
    assert (alone.code, "cohort needs --normalise" in alone.complaint) == (2, True)
    own = run("score", people, "-o", path, "--normalise", "as", {"cohort": population})
    assert (own.code, "against themselves" in own.complaint) == (2, True)
    of_pitch = run("score", people, "-o", path, "--normalise", "as")
    assert (of_pitch.code, "no speaker embeddings" in of_pitch.complaint) == (2, True)
    assert not path.exists()


def test_a_cohort_of_another_network_is_refused_before_speech_is_extracted(
    run, population, tmp_path, monkeypatch
):
    for speaker in ("ann", "bob"):
        (tmp_path / "audio" / speaker).mkdir(parents=True)
        soundfile.write(tmp_path / "audio" / speaker / "1.wav", np.zeros(16_000), 16_000)
    monkeypatch.setattr("monitor.training.voices.collect", None)
    cohort = {"cohort": population}  # of pitch alone
    options = ("-o", tmp_path / "s.npz", "--normalise", "as", cohort)
    refused = run("score", tmp_path / "audio", *options)
    assert refused.code == 2
    assert "no speaker embeddings of the same network" in refused.complaint


def test_against_templates_of_other_speech(run, people, population, tmp_path):
    heard = tmp_path / "heard"
    for speaker in people.iterdir():
        (heard / speaker.name).mkdir(parents=True)
        shutil.copy(speaker / "s1.npz", heard / speaker.name)
    path = tmp_path / "scores.npz"
    assert run("score", heard, "-p", population, "-o", path, "--lengths", "3").code == 0
    file = ScoreFile.from_file(path)
    assert [entry.words for entry in file.entries] == [("f0", "cross", "T=3", "D=20")]
    enrolled = tmp_path / "enrolled.npz"  # and not calibrated: the shipped rank model stands in
    assert run("enrol", people, "--seconds", "20", "-o", enrolled).code == 0
    options = ("-p", enrolled, "--lengths", "3", {"allow-overlap": True})
    assert run("score", heard, *options, "-o", tmp_path / "c.npz").code == 0
    allowed = ({"allow-overlap": True}, "--lengths", "3")
    assert run("score", people, "-p", population, "-o", tmp_path / "b.npz", *allowed).code == 0
    file = ScoreFile.from_file(tmp_path / "b.npz")
    assert [entry.session for entry in file.entries] == ["same"]


@pytest.fixture(scope="module")
def challenge(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """VoicePrivacy's layout of real speech: one chapter enrols, utterances of another are tests.

    174 is an impostor: in the lists of trials alone. Audio is written as Kaldi's recipes have it,
    as what flac decodes.
    """
    root = tmp_path_factory.mktemp("data")
    spoken: dict[str, list[str]] = {}
    where, enrolls = {}, []
    for reader in READERS:
        chapters = sorted((shared / "speech" / "dev-clean" / reader).glob("*.opus"))[:2]
        for part, chapter in enumerate(chapters):
            samples, rate = soundfile.read(chapter, frames=24 * 48_000)
            lengths = (7, 5, 6, 6) if part else (12, 8, 4)
            for i, length in enumerate(lengths):
                start = sum(lengths[:i]) * rate
                name = f"{reader}-{chapter.stem}-{i:04d}"
                path = root / "audio" / f"{name}.flac"
                path.parent.mkdir(exist_ok=True)
                soundfile.write(path, samples[start : start + length * rate], rate)
                where[name] = path
                if part:
                    spoken.setdefault(reader, []).append(name)
                elif reader != "174":
                    enrolls.append(name)

    def folder(name: str, utterances: list[str], **lists: list[str]) -> Path:
        made = root / name
        made.mkdir()
        lines = {
            "wav.scp": [f"{u} flac -c -d -s {where[u]} |" for u in utterances],
            "utt2spk": [f"{u} {u.split('-')[0]}" for u in utterances],
            "spk2utt": [f"{r} {' '.join(u for u in utterances if u.startswith(f'{r}-'))}"
                        for r in READERS],
            "spk2gender": [f"{r} {g}" for r, g in READERS.items()],
            **lists,
        }  # fmt: skip
        for file, text in lines.items():
            (made / file).write_text("\n".join([*text, ""]))
        return made

    def trials(gender: str) -> list[str]:
        tested = [u for r, g in READERS.items() if g == gender for u in spoken[r]]
        known = [r for r, g in READERS.items() if g == gender and r != "174"]
        return [
            f"{r} {u} {'target' if u.startswith(f'{r}-') else 'nontarget'}"
            for r in known
            for u in tested
        ]

    tested = [u for r in READERS for u in spoken[r]]
    folder("libri_dev", [*enrolls, *tested], enrolls=enrolls, trials_f=trials("f"),
           trials_m=trials("m"))  # fmt: skip
    folder("libri_dev_enrolls", enrolls, enrolls=enrolls)
    women = [u for r, g in READERS.items() if g == "f" for u in spoken[r]]
    folder("libri_dev_trials_f", women, trials=trials("f"))
    everyone = [
        f"{r} {u} {'target' if u.startswith(f'{r}-') else 'nontarget'}"
        for r in READERS
        for u in tested[::2]
        if r != "174"
    ]
    folder("libri_dev_trials_mixed", tested[::2], trials=everyone)
    return root


def test_the_lists_of_the_challenge(run, challenge, tmp_path):
    """All in one folder: what enrolls and trials list is compared, and who is left out is named."""
    path = tmp_path / "scores.npz"
    made = run("score", challenge / "libri_dev", "--features", "f0,voice", "-o", path)
    assert made.code == 0, made.err
    file = ScoreFile.from_file(path)
    entry = next(each for each in file.entries if each.system == "voice")
    matrix = file.matrix(entry, "voice")
    assert matrix.speakers == ("1272", "1462", "1673", "1988")
    assert matrix.trials == 16
    spoken = [matrix.speakers[column] for column in matrix.target.tolist()]
    assert [name.split()[0] for name in matrix.trial_names] == spoken
    assert (matrix.better == 0).mean() > 0.7  # real voices, recognised
    assert 4 < entry.test_seconds < 8
    # 174 speaks in the trials and is nobody's enrolment
    assert "4 utterances of 1 speaker (174) have no target" in made.err
    assert "list 44 of 80 comparisons" in made.err
    assert "--group-by gender" in made.err
    figured = run("evaluate", path, "--choose", "voice", "--group-by", "gender", "--json",
                  "--replicates", 0)  # fmt: skip
    # one man alone is enrolled
    assert figured.code == 2
    assert "m is omitted: 1 enrolled speaker" in figured.err


@pytest.fixture(scope="module")
def nearest(challenge: Path) -> Callable[[str], float]:
    """EERs of the mixed list in percent, from embeddings put together here, by the kit's rule."""
    sums = {
        name: session["voice"].whole()
        for folder in ("libri_dev_enrolls", "libri_dev_trials_mixed")
        for voice in collect(find(challenge / folder), features=["voice"])[0]
        for name, session in zip(voice.session_names, voice.sessions, strict=True)
    }
    unit = {name: total / np.linalg.norm(total) for name, total in sums.items()}
    spoken: dict[str, list[FloatArray]] = {}
    for utterance in (challenge / "libri_dev" / "enrolls").read_text().split():
        spoken.setdefault(utterance.split("-")[0], []).append(unit[utterance])
    means = {reader: np.mean(own, axis=0) for reader, own in spoken.items()}
    enrolled = {reader: mean / np.linalg.norm(mean) for reader, mean in means.items()}

    def of(part: str) -> float:
        scores: dict[str, list[float]] = {"target": [], "nontarget": []}
        for line in (challenge / "libri_dev_trials_mixed" / "trials").read_text().splitlines():
            speaker, utterance, label = line.split()
            first, second = READERS[speaker], READERS[utterance.split("-")[0]]
            inside = {"mixed": True, "cross": label == "target" or first != second}
            if inside.get(part, first == second == part):
                scores[label].append(float(unit[utterance] @ enrolled[speaker]))
        return 100 * speechbrain_eer(*(np.array(values) for values in scores.values()))

    return of


def table_of(printed: str) -> dict[tuple[str, ...], float]:
    """Rows of the challenge's table by section, gender and sides."""
    rates, section = {}, ""
    for line in printed.splitlines():
        words = line.split()
        if line.startswith("----"):
            section = " ".join(words[1:-2])
        elif words and words[0] != "dataset":
            rates[section, *words[2:5]] = float(words[-1])
    return rates


ORIGINAL = ("original", "original")
ROUNDING = 5e-4 + 1e-9  # of three decimals


def test_scores_print_the_table_of_the_challenge(run, challenge, nearest, tmp_path):
    """EERs are those of the challenge's own rule on all listed pairs, impostors included."""
    path = tmp_path / "scores.npz"
    mixed = challenge / "libri_dev_trials_mixed"
    made = run("score", mixed, "--features", "voice", "--voiceprivacy", "-o", path)
    assert made.code == 0, made.err
    rates = table_of(made.out)
    assert list(rates) == [("ASV_eval", part, *ORIGINAL) for part in ("mixed", "f", "m", "cross")]
    for (_, part, *_), rate in rates.items():
        assert rate == pytest.approx(nearest(part), abs=ROUNDING), part
    file = ScoreFile.from_file(path)
    assert file is not None
    entry = next(each for each in file.entries if each.system == "voice")
    assert file.matrix(entry, "voice").trials == 8  # the impostor's are in the table alone


def test_anonymised_folders_need_no_lists(run, challenge, nearest, tmp_path):
    """As the kit, with the original lists; the ignorant and the lazy attacker compare with both."""
    for name in ("libri_dev_enrolls", "libri_dev_trials_mixed"):
        lists = tmp_path / "data" / name
        shutil.copytree(challenge / name, lists)
        wav = tmp_path / "data" / f"{name}_copied" / "wav"
        wav.mkdir(parents=True)
        for utterance in (line.split()[0] for line in (lists / "wav.scp").read_text().splitlines()):
            shutil.copy(challenge / "audio" / f"{utterance}.flac", wav)
    made = run("score", tmp_path / "data" / "libri_dev_trials_mixed_copied", "--features", "voice",
               "--voiceprivacy", "-o", tmp_path / "scores.npz")  # fmt: skip
    assert made.code == 0, made.err
    rates = table_of(made.out)
    parts = ("mixed", "f", "m", "cross")
    assert list(rates) == [("ASV_eval", part, side, "anon")
                           for side in ("original", "anon") for part in parts]  # fmt: skip
    for (_, part, *_), rate in rates.items():
        assert rate == pytest.approx(nearest(part), abs=ROUNDING), part


def test_attacks_print_the_table_of_the_challenge(run, challenge, nearest, tmp_path):
    trials = tmp_path / "libri_dev_trials_mixed"
    shutil.copytree(challenge / trials.name, trials)
    shutil.copytree(challenge / "libri_dev_enrolls", tmp_path / "libri_dev_enrolls")
    names = [line.split()[0] for line in (trials / "wav.scp").read_text().splitlines()]
    (trials / "text").write_text("".join(f"{name} ONE, TWO THREE\n" for name in names))
    done = run("attack", trials, "--voiceprivacy", "-o", tmp_path / "out", "--method", "noise:20",
               "--attackers", "ignorant", "--features", "voice", "--jobs", 1,
               "--asr-command", "echo one two")  # fmt: skip
    assert done.code == 0, done.err
    assert (tmp_path / "out" / "voiceprivacy.txt").read_text() == done.out
    eers, _, errors = done.out.partition("---- ASR results ----\n")
    assert [line.split() for line in errors.splitlines()] == [
        ["dataset", "split", "asr", "WER"],
        *(["libri", "dev", side, "33.333"] for side in ("original", "anon")),
    ]
    rates = table_of(eers)
    parts = ("mixed", "f", "m", "cross")
    assert list(rates) == [("ASV_eval", part, "original", trial)
                           for trial in ("original", "anon") for part in parts]  # fmt: skip
    for part in parts:
        assert rates["ASV_eval", part, *ORIGINAL] == pytest.approx(nearest(part), abs=ROUNDING)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("score", "people", "-o", "a.npz"), "no list of trials"),
        (("score", "libri_dev", "-o", "a.npz", "-p", "x.npz"), "leave out -p"),
        (("score", "libri_dev", "-o", "a.npz", "--features", "f0"), "speaker embedding"),
        (("attack", "people", "-o", "out"), "no list of trials"),
        (("attack", "libri_dev", "-o", "out", "--features", "f0"), "speaker embedding"),
        (("attack", "libri_dev", "-o", "out", "--attributes", "gender"), "leave out --attributes"),
    ],
)
def test_the_table_needs_lists_and_an_embedding(
    run, people, challenge, tmp_path, monkeypatch, arguments, said
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people").symlink_to(people)
    (tmp_path / "libri_dev").symlink_to(challenge / "libri_dev")
    result = run(*arguments, "--voiceprivacy")
    assert (result.code, result.out) == (2, "")
    assert said in result.complaint


def test_who_is_left_out_is_told_why(run, people, population, tmp_path):
    heard = tmp_path / "heard"
    shutil.copytree(people / "000001", heard / "000001")
    shutil.copytree(people / "000002", heard / "impostor")
    write_corpus(tmp_path / "short", Simulation(3, 8), 1, 1, 4.0)
    shutil.copytree(tmp_path / "short" / "000000", heard / "000003")
    path = tmp_path / "scores.npz"
    allowed = ("--lengths", 10, {"allow-overlap": True})
    made = run("score", heard, "-p", population, "-o", path, *allowed)
    assert made.code == 0, made.err
    assert "impostor: excluded, not enrolled" in made.err
    short = next(line for line in made.err.splitlines() if "000003: " in line)
    assert "no trial" in short
    assert "less than T=10" in short
