"""monitor score, and monitor evaluate on what it writes."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile

from benchmarks.simulation import Simulation, write_corpus
from monitor.lab.evaluation.input.scores import ScoreFile

LENGTHS = ("--lengths", "3,10", "--template-lengths", "20", "--trials", "5")


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


@pytest.mark.slow
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
    both, _ = figures(run("evaluate", scores, again, "--choose", "T=3", "--json",
                          "--replicates", 0, "--dev", again))  # fmt: skip
    assert both == {"scores": values["T=3"], "again": values["T=3"]}


@pytest.mark.slow
def test_groups_come_with_the_scores(run, people, tmp_path):
    speakers = sorted(folder.name for folder in people.iterdir())
    rows = [f"{people / s / f'{part}.npz'},{s},{part},{'fm'[i % 2]}"
            for i, s in enumerate(speakers) for part in ("s0", "s1")]  # fmt: skip
    manifest = tmp_path / "people.csv"
    manifest.write_text("\n".join(["path,speaker,session,gender", *rows, ""]))
    path = tmp_path / "scores.npz"
    options = ("--template-lengths", "20", "--trials", "4")
    assert run("score", manifest, "-o", path, *options, "--session", "both").code == 0
    choice = ("--choose", "cross", "--replicates", 10, "--json")
    _, found = figures(run("evaluate", path, *choice, "--group-by", "gender"))
    assert set(found["groups"]["scores"]["groups"]) == {"f", "m"}
    refused = run("evaluate", path, *choice, "--group-by", "accent")
    assert "--group-by accent: scores.npz has gender; give --groups FILE" in refused.complaint


@pytest.mark.slow
def test_against_templates_of_other_speech(run, people, population, tmp_path):
    heard = tmp_path / "heard"
    for speaker in people.iterdir():
        (heard / speaker.name).mkdir(parents=True)
        shutil.copy(speaker / "s1.npz", heard / speaker.name)
    path = tmp_path / "scores.npz"
    assert run("score", heard, "-p", population, "-o", path, "--lengths", "3").code == 0
    file = ScoreFile.at(path)
    assert file is not None
    assert [entry.words for entry in file.entries] == [("f0", "cross", "T=3", "D=20")]
    enrolled = tmp_path / "enrolled.npz"  # and not calibrated: the shipped rank model stands in
    assert run("enrol", people, "--seconds", "20", "-o", enrolled).code == 0
    options = ("-p", enrolled, "--lengths", "3", "--allow-overlap")
    assert run("score", heard, *options, "-o", tmp_path / "c.npz").code == 0
    refused = run("score", people, "-p", population, "-o", tmp_path / "b.npz")
    assert "enrolled as 000000" in refused.complaint
    allowed = ("--allow-overlap", "--lengths", "3")
    assert run("score", people, "-p", population, "-o", tmp_path / "b.npz", *allowed).code == 0
    file = ScoreFile.at(tmp_path / "b.npz")
    assert file is not None
    assert [entry.session for entry in file.entries] == ["same"]


@pytest.mark.slow
def test_real_readers_and_files_that_are_skipped(run, clips, tmp_path):
    path = tmp_path / "scores.npz"
    done = run("score", clips, "-o", path, "--features", "f0", "--lengths", "5",
               "--template-lengths", "15", "--session", "same")  # fmt: skip
    assert done.code == 4
    assert re.search(r"^monitor: skipped: \S+/154320\.npz", done.err, re.M)
    assert "T=5 D=15 same: 100 trials of 5 speakers against 5; f0" in done.err
    values, _ = figures(run("evaluate", path, "--json", "--replicates", 0))
    assert values["scores"] > 0.4  # chance is 0.2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("-o", "a.csv"), "let the name end in .npz"),
        (("-o", "no/a.npz"), "there is no folder no"),
        (("-o", "a.npz", "--allow-overlap"), "--allow-overlap goes with -p"),
        (("-o", "a.npz", "-p", "us.npz", "--session", "same"), "--session goes without -p"),
        (("-o", "a.npz", "--lengths", "0"), "must be positive seconds"),
        (("-o", "a.npz", "--lengths", "600"), "nobody says enough for tests of 600 s"),
        (("-o", "a.npz", "--scoring", "max"), "f0: no feature has max scoring"),
        (("-o", "a.npz", "--group-by", "age"), "no table of people says who is of which age"),
    ],
)
def test_what_is_wrong_is_one_line(run, people, tmp_path, monkeypatch, options, said):
    monkeypatch.chdir(tmp_path)
    done = run("score", people, *options)
    assert done.code in (1, 2)
    assert said in done.complaint
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", ["score", "experiment"])
def test_one_speaker_is_refused_before_anything_is_heard(run, people, tmp_path, command):
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "ann").symlink_to(next(people.iterdir()))
    done = run(command, tmp_path / "one", "-o", tmp_path / "made.npz")
    assert done.code == 1
    assert "nobody to be taken for" in done.complaint
    assert "listening" not in done.err


def test_a_feature_that_nobody_kept_is_said(run, people, tmp_path):
    done = run("score", people, "-o", tmp_path / "a.npz", "--features", "voice")
    assert done.code == 1
    assert "holds no frames of voice" in done.err
    assert "nothing of this could be heard" in done.err


@pytest.mark.slow
def test_what_is_there_stays_unless_told(run, people, scores):
    before = scores.read_bytes()
    assert "use --replace" in run("score", people, "-o", scores).complaint
    assert scores.read_bytes() == before
    options = ("--replace", "--lengths", "3", "--template-lengths", "20")
    assert run("score", people, "-o", scores, *options).code == 0
    assert scores.read_bytes() != before


@pytest.mark.slow
def test_a_choice_that_makes_no_sense_is_one_line(run, scores, tmp_path):
    for options, said in (
        (("--choose", "voice"), "has no scores of voice; it has f0; cross; T=3 T=10; D=20"),
        (("--group-by", "gender"), "scores.npz has no groups"),
        (("--choose", "T=3", "--labels", scores), "says itself who spoke"),
    ):
        assert said in run("evaluate", scores, *options).complaint
    np.save(tmp_path / "plain.npy", np.eye(3))
    refused = run("evaluate", tmp_path / "plain.npy", "--choose", "f0")
    assert "--choose goes with SCORES from monitor score" in refused.complaint


READERS = {"1272": "m", "1462": "f", "1673": "f", "174": "m", "1988": "f"}


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
            samples, rate = soundfile.read(chapter, frames=36 * 48_000)
            for i in range(4 if part else 1):
                length = 8 if part else 36
                name = f"{reader}-{chapter.stem}-{i:04d}"
                path = root / "audio" / f"{name}.flac"
                path.parent.mkdir(exist_ok=True)
                soundfile.write(path, samples[i * length * rate : (i + 1) * length * rate], rate)
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
    return root


@pytest.mark.slow
def test_the_lists_of_the_challenge(run, challenge, tmp_path):
    """All in one folder: what enrolls and trials list is compared, and who is left out is named."""
    path = tmp_path / "scores.npz"
    made = run("score", challenge / "libri_dev", "--features", "f0,voice", "-o", path)
    assert made.code == 0, made.err
    file = ScoreFile.at(path)
    assert file is not None
    entry = next(each for each in file.entries if each.system == "voice")
    matrix = file.matrix(entry, "voice")
    assert matrix.speakers == ("1272", "1462", "1673", "1988")
    assert matrix.trials == 16
    spoken = [matrix.speakers[column] for column in matrix.target.tolist()]
    assert [name.split()[0] for name in matrix.trial_names] == spoken
    assert (matrix.better == 0).mean() > 0.7  # real voices, recognised
    assert 4 < entry.test_seconds < 8
    # 174 speaks in the trials and is nobody's enrolment
    assert "4 utterances of 1 speaker (174): without a target" in made.err
    assert "list 44 of 80 comparisons" in made.err
    assert "--group-by gender" in made.err
    figured = run("evaluate", path, "--choose", "voice", "--group-by", "gender", "--json",
                  "--replicates", 0)  # fmt: skip
    # one man alone is enrolled
    assert figured.code == 2
    assert "m is left out: 1 enrolled speaker" in figured.err


@pytest.mark.slow
def test_folders_of_their_own_and_templates_of_ones_own(run, challenge, tmp_path):
    beside, given = tmp_path / "beside.npz", tmp_path / "given.npz"
    folder = challenge / "libri_dev_trials_f"
    made = run("score", folder, "--features", "f0", "-o", beside)
    assert made.code == 0, made.err
    us = tmp_path / "us.npz"
    enrolled = run("enrol", challenge / "libri_dev", "--features", "f0", "-o", us)
    assert "plan: 4 speakers, as enrolls has them" in enrolled.err
    assert run("score", folder, "-p", us, "--features", "f0", "-o", given).code == 0
    with np.load(beside) as mine, np.load(given) as other:
        assert np.array_equal(mine["0_scores_f0"], other["0_scores_f0"])
        assert mine["0_speakers"].tolist() == ["1462", "1673", "1988"]
    # without templates of somebody whom the list compares with
    assert run("people", us, "--forget", "1673").code == 0
    fewer = run("score", folder, "-p", us, "--features", "f0", "-o", tmp_path / "fewer.npz")
    assert "1673: in trials, but not enrolled: left out" in fewer.err
    assert "1673: not enrolled, left out" in fewer.err
    # lists and no enrolment anywhere
    alone = tmp_path / "alone"
    shutil.copytree(folder, alone)
    refused = run("score", alone, "-o", tmp_path / "no.npz", "--features", "f0")
    assert refused.code == 2
    assert "monitor enrol ENROLLS" in refused.complaint
    (alone / "trials").write_text("1462 \x1b[2J target\n")
    assert "is not SPEAKER" in run("score", alone, "-o", tmp_path / "no.npz", "-p", us).complaint
    (alone / "trials").write_text("1462 1462-1-0000 perhaps\n")
    refused = run("score", alone, "-o", tmp_path / "no.npz", "-p", us)
    assert refused.code == 1
    assert "trials line 1 is not SPEAKER UTTERANCE target|nontarget" in refused.complaint


@pytest.mark.slow
def test_who_is_left_out_is_told_why(run, people, population, tmp_path):
    heard = tmp_path / "heard"
    shutil.copytree(people / "000001", heard / "000001")
    shutil.copytree(people / "000002", heard / "impostor")
    write_corpus(tmp_path / "short", Simulation(3, 8), 1, 1, 4.0)
    shutil.copytree(tmp_path / "short" / "000000", heard / "000003")
    path = tmp_path / "scores.npz"
    made = run("score", heard, "-p", population, "-o", path, "--lengths", 10, "--allow-overlap")
    assert made.code == 0, made.err
    assert "impostor: not enrolled, left out" in made.err
    short = next(line for line in made.err.splitlines() if "000003: " in line)
    assert "less than T=10: no trial" in short
    # of a corpus by itself: who has too little for T and D, and who has no second session
    shutil.copytree(people / "000004", heard / "000004")
    shutil.rmtree(heard / "impostor")
    (heard / "000004" / "s1.npz").unlink()
    made = run("score", heard, "-o", path, "--replace", *LENGTHS)
    assert made.code == 0, made.err
    out = [line for line in made.err.splitlines() if "T=10 D=20 cross: " in line]
    assert any("left out, with less than 20 s" in line and "000003 (" in line for line in out)
    assert any("without a trial" in line and line.endswith("000004") for line in out)
