from __future__ import annotations

import shlex
import shutil
import stat
from pathlib import Path

import numpy as np
import pytest
import soundfile

from benchmarks.simulation import Simulation, write_corpus
from monitor.cli.inputs import plan_of
from monitor.corpus import find
from monitor.population.population import Population
from monitor.sources.frames import write_frames

RATE = 16_000
PITCH = {"ann": 200.0, "bob": 110.0, "cleo": 150.0}


@pytest.fixture(scope="module")
def sounds(voice) -> dict[str, np.ndarray]:
    return {name: voice(9.0, pitch) for name, pitch in PITCH.items()}


def put(path: Path, samples: np.ndarray, rate: int = RATE) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, samples, rate)


def libri(root: Path, sounds) -> Path:
    for number, samples in zip((19, 26, 103), sounds.values(), strict=True):
        put(root / f"corpus/{number}/7/{number}-7-0000.flac", samples[: 5 * RATE])
        put(root / f"corpus/{number}/7/{number}-7-0001.flac", samples[5 * RATE :])
    return root / "corpus"


def kaldi(root: Path, sounds) -> Path:
    for name, samples in sounds.items():
        put(root / f"data/wav/{name}.wav", samples)
    (root / "data/wav.scp").write_text("".join(f"{n}-1 wav/{n}.wav\n" for n in sounds))
    (root / "data/utt2spk").write_text("".join(f"{n}-1 {n}\n" for n in sounds))
    return root / "data"


def manifest(root: Path, sounds) -> Path:
    lines = ["path,speaker,session\n"]
    for name, samples in sounds.items():
        put(root / f"{name}.ogg", samples)
        lines.append(f"{name}.ogg,{name},monday\n")
    (root / "list.csv").write_text("".join(lines))
    return root / "list.csv"


def folders(root: Path, sounds) -> Path:
    for name, samples in sounds.items():
        put(root / f"voices/{name}/monday/1.wav", np.repeat(samples, 3), 48_000)
    return root / "voices"


def test_a_template_is_of_the_whole_recording(run, tmp_path, sounds):
    """Of MP3s without a length, and of two streams in a file: what libsndfile ends before."""
    noise = np.random.default_rng(0).normal(0, 0.2, RATE)  # whose frames are longer than the rest
    samples = np.concatenate([noise, *sounds.values()])
    put(tmp_path / "voices/xing/1.mp3", samples)
    data = (tmp_path / "voices/xing/1.mp3").read_bytes()
    files = {"bare/1.mp3": data[data.find(data[:2], 2) :], "chain/1.mp3": data + data}
    for name, content in files.items():
        (tmp_path / "voices" / name).parent.mkdir()
        (tmp_path / "voices" / name).write_bytes(content)
    result = run("enrol", tmp_path / "voices", "-o", tmp_path / "us.npz", "--features", "f0")
    assert result.code == 0, result.err
    population = Population.load(tmp_path / "us.npz")
    seconds = dict(zip(population.names, population.template_seconds.tolist(), strict=True))
    assert seconds == {"bare": 20.0, "chain": 45.0, "xing": 20.0}


@pytest.mark.parametrize("layout", [libri, kaldi, manifest, folders])
def test_every_layout(run, tmp_path, sounds, layout):
    corpus = layout(tmp_path, sounds)
    # hardly a phone can be made out of such sounds
    result = run("enrol", corpus, "-o", tmp_path / "us.npz", "--features", "f0")
    assert (result.code, result.out) == (0, "")
    population = Population.load(tmp_path / "us.npz")
    names = ("19", "26", "103") if layout is libri else tuple(PITCH)
    assert population.names == names
    assert population.template_seconds.tolist() == [5.0] * 3
    assert stat.S_IMODE((tmp_path / "us.npz").stat().st_mode) == 0o600
    plan, head, *rows, first, second = result.err.splitlines()
    by = "a folder each" if layout is folders else "as "
    assert plan.startswith(f"plan: 3 speakers, {by}")
    assert "; up to 120 s of speech of each" in plan
    assert plan.endswith("(one person's folders? add --speaker NAME)") == (layout is folders)
    assert head.split() == ["speaker", "sessions", "files", "minutes"]
    files = "2" if layout is libri else "1"
    assert [row.split() for row in rows] == [[name, "1", files, "0.1"] for name in names]
    assert first == f"3 speakers enrolled with 5 s of speech; {tmp_path / 'us.npz'} holds 3"
    assert second.startswith("next: 10 speakers or more can be calibrated")
    assert "monitor calibrate" not in second  # which would refuse them
    assert second.endswith(f"monitor enrol PEOPLE --add -o {tmp_path / 'us.npz'}")
    counts = population.templates("f0", population.scoring())
    high, low, middle = counts.argmax(axis=1)
    assert len({high, low, middle}) == 3
    assert min(high, low) < middle < max(high, low)


def test_nothing_is_overwritten_unasked(run, tmp_path, people):
    path = tmp_path / "us.npz"
    assert run("enrol", people, "-o", path, "--seconds", 10).code == 0
    before = path.read_bytes()
    result = run("enrol", people, "-o", path)
    assert result.code == 2
    assert "exists; use --add to add speakers or --replace to overwrite it" in result.complaint
    assert path.read_bytes() == before
    assert run("enrol", people, "-o", path, "--seconds", "15s", "--replace").code == 0
    assert set(Population.load(path).template_seconds) == {15.0}


def test_adding(run, tmp_path, people, population):
    path = tmp_path / "us.npz"
    path.write_bytes(population.read_bytes())
    path.chmod(0o644)
    write_corpus(tmp_path / "new", Simulation(20, 8), 2, 1, 40.0)
    for i in range(2):
        (tmp_path / f"new/00000{i}").rename(tmp_path / f"new/guest{i}")
    result = run("enrol", tmp_path / "new", "-o", path, "--add", "--seconds", 20)
    assert result.code == 0
    made = Population.load(path)
    assert made.names[-2:] == ("guest0", "guest1")
    assert len(made) == 14
    assert made.mismatched
    assert "calibration lacks the new speakers" in result.err
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    # and a run says so, to programs and to people
    run_of = run("replay", people / "000003/s1.npz", "-p", path, "--watch", "guest1")
    assert run_of.records[0]["rank_model"] == "mismatched"
    lacking = "Calibration lacks some enrolled speakers"
    assert any(lacking in notice for notice in run_of.records[0]["notices"])
    assert lacking in run_of.err
    assert run_of.records[0]["speakers"] == 14

    before = path.read_bytes()
    again = run("enrol", tmp_path / "new", "-o", path, "--add")
    assert again.code == 2
    assert "is enrolled already, as guest0" in again.complaint
    assert path.read_bytes() == before


def test_among_the_shipped_readers(run, tmp_path, reference):
    simulation, size = Simulation(2), reference.features["f0"].spec.size
    for name in ("me", "you"):
        frames = simulation.frames(len(name) - 2, 0, 60.0)
        (tmp_path / "corpus" / name).mkdir(parents=True)
        write_frames(
            tmp_path / "corpus" / name / "a.npz", frames.speech, frames.tracks, {"f0": size},
            {"f0": 0.01},
        )  # fmt: skip
    path = tmp_path / "mix.npz"
    corpus = tmp_path / "corpus"
    without = run("enrol", corpus, "--base", "reference", "-o", path)
    assert without.code == 1
    assert "a.npz: holds no frames of phones" in without.complaint
    result = run("enrol", corpus, "--base", "reference", "--features", "f0", "-o", path)
    assert result.code == 0
    assert f"{path} is without phones, voice" in result.err
    assert "; choose with --features" in result.err
    made = Population.load(path)
    assert made.names == (*reference.names, "me", "you")
    assert made.mismatched
    assert set(made.features) == {"f0"}
    assert {rank_model.features for rank_model in made.rank_models} == {("f0",)}
    assert f"holds {len(made)}" in result.err
    # 60 s of audio are less than the readers have: said once, with what to do
    (line,) = [line for line in result.err.splitlines() if "all templates are cut" in line]
    shortest = made.template_seconds.min()
    assert f"cut to {shortest:g} s, the shortest of them: me, you have less than the" in line
    assert "--add" in line
    again = run("enrol", corpus, "--base", path, "-o", tmp_path / "x.npz")
    assert again.code == 2
    assert "me, you enrolled already" in again.complaint
    both = run("enrol", corpus, "--base", "reference", "--add", "-o", path)
    assert both.code == 2
    assert "leave out --base" in both.complaint


def test_a_minute_of_ones_own_is_compared_without_being_watched(run, tmp_path, shared):
    """Real speech: a minute of a reader beside the shipped ones, and another chapter heard."""
    folder = shared / "speech" / "dev-clean" / "1272"
    enrolled, heard = sorted(folder.glob("*.opus"))[:2]
    for name, path, seconds in (("mine", enrolled, 80), ("talk", heard, 40)):
        samples, rate = soundfile.read(path, frames=seconds * 48_000)
        put(tmp_path / f"{name}.flac", samples[: seconds * rate], rate)
    me = tmp_path / "me.npz"
    made = run("enrol", tmp_path / "mine.flac", "--speaker", "me", "--base", "reference",
               "--features", "f0,voice", "--seconds", 60, "-o", me)  # fmt: skip
    assert made.code == 0
    assert Population.load(me).template_seconds.min() < 80
    run_of = run("replay", tmp_path / "talk.flac", "-p", me)
    start = run_of.records[0]
    assert start["speakers"] == 51
    assert start["template_seconds"] == Population.load(me).template_seconds.min()
    assert {name for name, _ in run_of.readings[-1]["top"][:2]} == {"me", "1272"}  # one voice
    # a few seconds are too little to cut everybody to: said in the first line, with what to do
    few = tmp_path / "few.npz"
    assert run("enrol", tmp_path / "mine.flac", "--speaker", "me", "--base", "reference",
               "--features", "f0,voice", "--seconds", 15, "-o", few).code == 0  # fmt: skip
    run_of = run("replay", tmp_path / "talk.flac", "-p", few)
    assert run_of.records[0]["speakers"] == 50
    first = run_of.err.splitlines()[0]
    assert "me is not among the 50 compared" in first
    assert "--add" in first
    assert "--watch" in first
    assert (
        run("replay", tmp_path / "talk.flac", "-p", few, "--watch", "me").readings[-1]["bits"] > 1
    )


def test_one_person_alone(run, tmp_path, people):
    (tmp_path / "me").mkdir()
    (tmp_path / "me" / "000000").symlink_to(people / "000000")
    result = run("enrol", tmp_path / "me", "-o", tmp_path / "me.npz")
    assert result.code == 0
    assert result.err.splitlines()[-2].startswith("1 speaker enrolled with ")
    assert f"--add -o {tmp_path / 'me.npz'}" in result.err.splitlines()[-1]
    assert len(Population.load(tmp_path / "me.npz")) == 1


def test_two_of_very_unequal_length(run, tmp_path, people):
    write_corpus(tmp_path / "c", Simulation(1), 1, 1, 12.0)
    (tmp_path / "c" / "x").symlink_to(people / "000000")
    result = run("enrol", tmp_path / "c", "-o", tmp_path / "us.npz")
    assert result.code == 0
    assert len(Population.load(tmp_path / "us.npz")) == 2
    assert "enrol more speech" in result.complaint


def test_a_broken_file_is_skipped_and_named(run, tmp_path, sounds):
    corpus = folders(tmp_path, sounds)
    (corpus / "bob/monday/2.wav").write_text("no audio")
    result = run("enrol", corpus, "-o", tmp_path / "us.npz", "--features", "f0")
    assert result.code == 4
    assert "/monday/2.wav is no recording" in result.complaint
    assert len(Population.load(tmp_path / "us.npz")) == 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--seconds", "4"], "at least 5 s"),
        (["--seconds", "0"], "at least 5 s"),
        (["--seconds", "x"], "is not a length"),
        (["--features", ","], "name at least one"),
    ],
)
def test_options_that_make_no_sense(run, tmp_path, people, options, words):
    result = run("enrol", people, "-o", tmp_path / "us.npz", *options)
    assert result.code == 2
    assert words in result.complaint
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_feature(run, tmp_path, sounds):
    result = run("enrol", folders(tmp_path, sounds), "-o", tmp_path / "us.npz", "--features", "f1")
    assert result.code == 2
    assert "did you mean f0?" in result.complaint


@pytest.mark.slow
def test_only_data_on_stdout_and_a_bar_on_a_terminal(terminal, tmp_path, people):
    # a speaker's name must not be able to steer the terminal
    lines = [f"{people}/00000{i}/s{j}.npz,[/{i}]\n" for i in range(2) for j in range(2)]
    (tmp_path / "list.csv").write_text("path,speaker\n" + "".join(lines))
    code, shown, _ = terminal("enrol", tmp_path / "list.csv", "-o", tmp_path / "us.npz", both=True)
    assert code == 0
    assert "enrolling" in shown
    assert "4/4" in shown
    assert "2 speakers enrolled" in shown
    assert shown.endswith("us.npz\n")


@pytest.mark.slow
def test_recordings_of_one_person(run, tmp_path, sounds):
    corpus = folders(tmp_path, {"monday": sounds["ann"], "tuesday": sounds["ann"]})
    common = ("--speaker", "me", "--base", "reference", "--features", "f0", "-o")
    result = run("enrol", corpus, *common, tmp_path / "me.npz")
    assert result.code == 0
    plan, _, row = result.err.splitlines()[:3]
    assert plan == "plan: 1 speaker; up to 120 s of speech of each, beside 50 enrolled before"
    assert row.split() == ["me", "2", "2", "0.3"]
    made = Population.load(tmp_path / "me.npz")
    assert made.names[-1] == "me"
    assert len(made) == 51
    assert [note.session for note in made.speakers[-1].sources] == [
        "monday/monday",
        "tuesday/monday",
    ]
    files = sorted(corpus.rglob("*.wav"))
    assert run("enrol", *files, *common, tmp_path / "same.npz").code == 0
    assert (Population.load(tmp_path / "same.npz").offsets == made.offsets).all()
    assert run("enrol", files[0], *common, tmp_path / "one.npz").code == 0
    assert Population.load(tmp_path / "one.npz").template_seconds[-1] == 5.0


def test_a_folder_that_does_not_say_whose_shows_the_command_that_works(run, tmp_path, sounds):
    put(tmp_path / "it's me" / "a.wav", sounds["ann"])
    given = ["enrol", f"{tmp_path}/it's me", "--base", "reference", "-o", f"{tmp_path}/me.npz"]
    result = run(*given, "--features", "f0")
    assert result.code == 1
    what, shown = result.complaint.split("; if it is one person's: ")
    assert what == "monitor: it's me holds recordings but does not say whose"
    name, *arguments = shlex.split(shown)
    assert name == "monitor"
    assert run(*arguments, "--features", "f0").code == 0
    assert Population.load(tmp_path / "me.npz").names[-1] == "NAME"


@pytest.mark.parametrize(("chapter", "told"), [("1272/135031", 0), ("84/121123", 2)])
def test_two_people_under_one_name_are_told(run, tmp_path, clips, chapter, told):
    (tmp_path / "me").mkdir()
    for source in (clips / "1272/128104.npz", clips / f"{chapter}.npz"):
        shutil.copy(source, tmp_path / "me")
    common = ("--speaker", "me", "--base", "reference", "--features", "f0", "-o")
    result = run("enrol", tmp_path / "me", *common, tmp_path / "me.npz")
    assert result.code == 0
    notes = [line for line in result.err.splitlines() if "sounds like somebody else" in line]
    assert len(notes) == told
    if told:
        assert notes[0].startswith("monitor: note: 121123 of me sounds like somebody else than the")


def test_a_folder_among_loose_recordings_may_be_a_session(run, tmp_path, sounds):
    put(tmp_path / "me" / "a.wav", sounds["ann"])
    put(tmp_path / "me" / "monday" / "b.wav", sounds["ann"])
    result = run("enrol", tmp_path / "me", "--features", "f0", "-o", tmp_path / "me.npz")
    assert result.code == 4
    assert "(one person's folders? add --speaker NAME)" in result.err.splitlines()[0]
    assert "a.wav lies outside every speaker's folder" in result.err


@pytest.mark.slow
def test_the_plan_of_many_speakers_is_short(tmp_path):
    for i in range(500):
        put(tmp_path / f"s{i}/a.wav", np.zeros(RATE))
    put(tmp_path / "s0/b.wav", np.zeros(RATE * 60))
    (tmp_path / "s1/a.wav").write_text("no audio")
    plan = list(plan_of(find(tmp_path)))
    assert len(plan) == 23
    assert [row.split() for row in plan[2:5]] == [
        ["s0", "2", "2", "1.0"],
        ["s1", "1", "1", "?"],
        ["s2", "1", "1", "0.0"],
    ]
    assert plan[-1] == "  and 480 more"


def test_whatever_is_enrolled_can_be_loaded_again(run, tmp_path, sounds):
    put(tmp_path / "in" / f"{'a' * 240}.wav", sounds["ann"])
    lines = [f"in/{'a' * 240}.wav,ann,monday", f"in/{'a' * 240}.wav,{'b' * 201},monday"]
    (tmp_path / "list.csv").write_text("\n".join(["path,speaker,session", *lines, ""]))
    result = run("enrol", tmp_path / "list.csv", "-o", tmp_path / "us.npz", "--features", "f0")
    assert result.code == 4
    assert "name 'bbbbbbbbbbbbbbbbbbbb'... is longer than 200 characters" in result.err
    assert Population.load(tmp_path / "us.npz").names == ("ann",)
    for name in ("a\x1bb", "b" * 201):
        refused = run("enrol", tmp_path / "in", "--speaker", name, "-o", tmp_path / "x.npz")
        assert refused.code == 2
        assert "--speaker needs a name that can be printed" in refused.complaint


def test_the_shipped_readers_have_no_words_and_that_is_said(run, tmp_path):
    soundfile.write(tmp_path / "talk.wav", np.zeros(16000), 16000)
    (tmp_path / "talk.vtt").write_text("WEBVTT\n\n00:00.100 --> 00:00.900\nso be it\n")
    done = run("enrol", tmp_path / "talk.wav", "--speaker", "me", "--base", "reference",
               "--features", "f0,style", "-o", tmp_path / "me.npz")  # fmt: skip
    assert done.code == 2
    assert "have no style, as the shipped readers have no words: leave it out" in done.complaint
