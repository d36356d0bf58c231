"""monitor enrol and monitor people: who is in a file, what is heard of them, and what is left."""

import shlex
import shutil
import stat
import zipfile
from pathlib import Path

import numpy as np
import pytest
import soundfile

from benchmarks.simulation import Simulation, write_corpus
from monitor.cli import main
from monitor.population.population import Population, load_rank_models
from monitor.sources.frames import write_frames
from tests.features.networks import of_energies, of_sound
from tests.settings import configured
from tests.sounds import RATE
from tests.weights import onnx_extra


@pytest.fixture
def voices(tmp_path: Path, voice) -> Path:
    for name, pitch in (("ann", 200.0), ("bob", 110.0), ("cleo", 150.0)):
        path = tmp_path / "voices" / name / "talk.wav"
        path.parent.mkdir(parents=True)
        soundfile.write(path, voice(9.0, pitch), RATE)
    return tmp_path / "voices"


def test_a_folder_each_and_what_cannot_be_read(run, voices, tmp_path):
    us = tmp_path / "us.npz"
    (voices / "bob/2.wav").write_text("no audio")
    result = run("enrol", voices, "-o", us, "--features", "f0")
    assert (result.code, result.out) == (4, "")
    assert "/2.wav is not a readable recording" in result.complaint
    population = Population.load(us)
    assert population.names == ("ann", "bob", "cleo")
    assert population.template_seconds.tolist() == [5.0] * 3
    assert stat.S_IMODE(us.stat().st_mode) == 0o600
    assert result.err.startswith("plan: 3 speakers, a folder each; up to 120 s of speech each")
    high, low, middle = population.templates("f0", population.scoring()).argmax(axis=1)
    assert min(high, low) < middle < max(high, low)


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
    assert "1 to 2 bits too high" in result.err
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    # and a run says so, to programs and to people
    run_of = run("replay", people / "000003/s1.npz", "-p", path, "--watch", "guest1")
    assert run_of.records[0]["rank_model"] == "mismatched"
    lacking = "Enrolled speakers are not calibrated"
    assert any(lacking in notice for notice in run_of.records[0]["notices"])
    assert lacking in run_of.err
    assert run_of.records[0]["speakers"] == 14


def test_among_the_shipped_readers(run, tmp_path, reference):
    simulation, size = Simulation(2), reference.features["f0"].spec.size
    corpus, path = tmp_path / "corpus", tmp_path / "mix.npz"
    for number, name in enumerate(("me", "you")):
        frames = simulation.frames(number, 0, 60.0)
        (corpus / name).mkdir(parents=True)
        write_frames(
            corpus / name / "a.npz", frames.speech, frames.tracks, {"f0": size}, {"f0": 0.01}
        )
    without = run("enrol", corpus, "--base", "reference", "-o", path)
    assert without.code == 1
    assert "a.npz: no frames of phones" in without.complaint
    result = run("enrol", corpus, "--base", "reference", "--features", "f0", "-o", path)
    assert result.code == 0
    assert f"{path} lacks phones, voice" in result.err
    made = Population.load(path)
    assert made.names == (*reference.names, "me", "you")
    assert made.mismatched
    assert {rank_model.features for rank_model in made.rank_models} == {("f0",)}
    # 60 s of audio are less than the readers have
    shortest = made.template_seconds.min()
    assert f"cut to {shortest:g} s, the shortest. me, you have less than the" in result.err


def test_a_minute_of_ones_own_is_compared_without_being_watched(run, tmp_path, shared):
    """Real speech: a minute of a reader beside the shipped ones, and another chapter heard."""
    folder = shared / "speech" / "dev-clean" / "1272"
    enrolled, heard = sorted(folder.glob("*.opus"))[:2]
    for name, path, seconds in (("mine", enrolled, 80), ("talk", heard, 40)):
        samples, rate = soundfile.read(path, frames=seconds * 48_000)
        soundfile.write(tmp_path / f"{name}.flac", samples[: seconds * rate], rate)
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
    # a few seconds are too little to cut everybody to
    few = tmp_path / "few.npz"
    assert run("enrol", tmp_path / "mine.flac", "--speaker", "me", "--base", "reference",
               "--features", "f0,voice", "--seconds", 15, "-o", few).code == 0  # fmt: skip
    run_of = run("replay", tmp_path / "talk.flac", "-p", few)
    assert run_of.records[0]["speakers"] == 50
    first = run_of.err.splitlines()[0]
    assert "me is not among the 50 compared" in first
    assert (
        run("replay", tmp_path / "talk.flac", "-p", few, "--watch", "me").readings[-1]["bits"] > 1
    )


def test_recordings_of_one_person(run, tmp_path, voice):
    files = [tmp_path / "it's me" / f"{day}.wav" for day in ("monday", "tuesday")]
    files[0].parent.mkdir()
    for path in files:
        soundfile.write(path, voice(9.0, 200.0), RATE)
    common = ("--base", "reference", "--features", "f0")
    told = run("enrol", files[0].parent, *common, "-o", tmp_path / "me.npz")
    assert told.code == 1
    what, shown = told.complaint.split("; if all are of one person: ")
    assert what == "monitor: it's me has recordings without a speaker"
    name, *arguments = shlex.split(shown)
    assert (name, run(*arguments).code) == ("monitor", 0)
    made = Population.load(tmp_path / "me.npz")
    assert made.names[-1] == "NAME"
    assert [note.session for note in made.speakers[-1].sources] == ["monday", "tuesday"]
    assert run("enrol", *files, *common, "--speaker", "me", "-o", tmp_path / "same.npz").code == 0
    assert (Population.load(tmp_path / "same.npz").offsets == made.offsets).all()


def test_two_people_under_one_name_are_told(run, tmp_path, clips):
    (tmp_path / "me").mkdir()
    for source in (clips / "1272/128104.npz", clips / "84/121123.npz"):
        shutil.copy(source, tmp_path / "me")
    common = ("--speaker", "me", "--base", "reference", "--features", "f0", "-o")
    result = run("enrol", tmp_path / "me", *common, tmp_path / "me.npz")
    assert result.code == 0
    assert "monitor: note: 121123 of me sounds unlike" in result.err


@pytest.mark.slow
def test_a_corpus_is_heard_once_and_enrolled_from_its_frames(run, voices, tmp_path):
    frames, us = tmp_path / "frames", tmp_path / "us.npz"
    command = ("enrol", voices, "-o", us, "--replace", "--frames", frames, "--features", "f0")
    done = run(*command, "--jobs", "1")
    assert done.code == 0
    assert f"frames of 3 recordings written to {frames}, 0 there already" in done.err
    kept = us.read_bytes()
    done = run(*command, "--jobs", "1")
    assert done.code == 0
    assert "3 there already" in done.err
    assert run("enrol", frames, "-o", us, "--replace").code == 0
    assert us.read_bytes() == kept
    other = run(*command, "--channel", "1")
    assert other.code == 2
    assert f"--frames {frames}: its frames were made with channel all, not 1" in other.complaint


def hinted(result) -> list[str]:
    """The command that enrol recommends, as a shell reads it."""
    (line,) = [line for line in result.err.splitlines() if line.startswith("next: ")]
    program, *arguments = shlex.split(line.removeprefix("next:"), comments=True)
    assert program == "monitor"
    return arguments


@pytest.fixture
def ten(tmp_path: Path, voice) -> Path:
    """Ten people, in a folder whose name a shell splits."""
    for number in range(10):
        path = tmp_path / "ten voices" / f"p{number}" / "talk.wav"
        path.parent.mkdir(parents=True)
        soundfile.write(path, voice(9.0, 90.0 + 15 * number, number), RATE)
    return tmp_path / "ten voices"


QUICKLY = ("--lengths", "1", "--template-lengths", "2", "--jobs", "1",
           {"trials": 2, "replicates": 20, "alarms": False})  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("keeps", [True, False])
def test_what_enrol_recommends_runs_and_nothing_is_extracted_twice(run, ten, tmp_path, keeps):
    us, frames = tmp_path / "our us.npz", tmp_path / "our us.frames"
    kept = ("--frames", frames) if keeps else ()
    made = run("enrol", ten, "-o", us, "--features", "f0", "--jobs", "1", *kept)
    assert made.code == 0
    assert ("need not extract" in made.err.partition("next: ")[0]) == (not keeps)
    if keeps:
        shutil.rmtree(ten)
    calibrated = run(*hinted(made), *QUICKLY)
    assert calibrated.code == 0, calibrated.err
    assert len(Population.load(us).rank_models)
    assert stat.S_IMODE(frames.stat().st_mode) == 0o700
    if not keeps:
        shutil.rmtree(ten)
    scored = run("score", frames, "-o", tmp_path / "s.npz", "--lengths", "1",
                 "--template-lengths", "2", "--jobs", "1")  # fmt: skip
    assert scored.code == 0, scored.err
    name = Population.load(us).names[0]
    forgotten = run("people", us, "--forget", name)
    assert str(frames / name / "talk.npz") in forgotten.err
    (frames / name / "talk.npz").unlink()


@pytest.mark.slow
def test_frames_are_not_recommended_within_the_corpus(run, ten):
    us = ten / "us.npz"
    made = run("enrol", ten, "-o", us, "--features", "f0", "--jobs", "1")
    assert made.code == 0
    assert run(*hinted(made), *QUICKLY).code == 4  # us.npz is skipped
    assert len(Population.load(us).rank_models)


@pytest.mark.slow
def test_enrolments_of_two_voices_are_noted_and_kept(run, shared, tmp_path):
    own, other = (
        soundfile.read(shared / "speech/dev-clean" / name, RATE * 20, RATE * 5, dtype="float32")[0]
        for name in ("1272/128104.opus", "174/50561.opus")
    )
    soundfile.write(tmp_path / "two.wav", np.concatenate([own[: 11 * RATE], other[11 * RATE :]]),
                    RATE)  # fmt: skip
    soundfile.write(tmp_path / "one.wav", own, RATE)
    common = ("--speaker", "mia", "--base", "reference", "--features", "voice", "-o")
    two = run("enrol", tmp_path / "two.wav", *common, tmp_path / "two.npz")
    one = run("enrol", tmp_path / "one.wav", *common, tmp_path / "one.npz")
    assert (two.code, one.code) == (0, 0)
    assert "monitor: note: mia: the voice changes about" in two.err
    assert "mia: " not in one.err.replace("mia: excluded unless watched", "")
    assert Population.load(tmp_path / "two.npz").names[-1] == "mia"


def test_a_template_remembers_its_network_and_no_other_is_taken(run, voices, wav, tmp_path):
    onnx_extra()
    mine, other = (tmp_path / f"{name}.onnx" for name in ("mine", "other"))
    us = tmp_path / "us.npz"
    mine.write_bytes(of_sound(seed=1))
    other.write_bytes(of_energies(seed=2))
    done = run("enrol", voices, "-o", us, "--features", "f0,speaker", "--speaker-model", mine)
    assert "Povey's window" not in done.err
    assert done.code == 0, done.err
    made = Population.load(us).features
    f0, name = made
    assert (f0, name[: len("speaker_")]) == ("f0", "speaker_")
    before = us.read_bytes()
    for arguments in (
        ("replay", wav, "-p", us),
        ("calibrate", voices, "-o", us),
        ("enrol", voices, "--speaker", "eve", "--add", "-o", us),
    ):
        refused = run(*arguments, "--speaker-model", other)
        assert refused.code == 2
        assert f"has templates of another network, {name}" in refused.complaint
    refused = run("enrol", wav, "--speaker", "eve", "--add", "-o", us)
    assert f"{name} needs the network of its templates" in refused.complaint
    assert us.read_bytes() == before
    assumed = run("enrol", voices, "-o", tmp_path / "b.npz", "--speaker-model", other,
                  "--features", "speaker")  # fmt: skip
    assert "Povey's window is assumed" in assumed.err


@pytest.fixture(scope="module")
def learnt(people: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve people, and rank models that were learnt from them against a cohort of ten others."""
    folder = tmp_path_factory.mktemp("learnt")
    path, others = folder / "us.npz", folder / "others"
    write_corpus(others, Simulation(30, 8), 10, 1, 40.0)
    for i, each in enumerate(sorted(others.iterdir())):
        each.rename(others / f"neighbour{i}")
    for arguments in (
        ("enrol", people, "-o", path, "--seconds", 20),
        ("calibrate", people, "-o", path, "--cohort", others, "--lengths", "2,5",
         "--template-lengths", "10,20", {"replicates": 20, "trials": 4}),
    ):  # fmt: skip
        with pytest.raises(SystemExit) as left:
            main(configured(arguments, folder))
        assert not left.value.code
    return path


@pytest.fixture
def calibrated(learnt: Path, tmp_path: Path) -> Path:
    """A copy of them, which a test may change."""
    return Path(shutil.copy(learnt, tmp_path))


def everything(path: Path) -> bytes:
    """All that a store holds, inflated."""
    with zipfile.ZipFile(path) as archive:
        return b"".join(archive.read(name) for name in archive.namelist())


def test_nothing_of_a_person_is_left(run, people, calibrated):
    before = Population.load(calibrated)
    name = before.names[3]
    template = before.features["f0"].slices[before.offsets[3] : before.offsets[4]]
    hashes = [each for note in before.speakers[3].sources for each in note.hashes]
    old, place = everything(calibrated), calibrated.open("rb")
    assert template.tobytes() in old
    assert all(each.encode() in old for each in (f'"{name}"', *hashes))
    with place:
        result = run("people", calibrated, "--forget", name)
        assert result.code == 0, result.err
        assert not any(place.read())  # the bytes of the old file, where they lay
    new = everything(calibrated)
    assert template.tobytes() not in new
    assert not any(each.encode() in new for each in (f'"{name}"', *hashes))
    assert stat.S_IMODE(calibrated.stat().st_mode) == 0o600
    after = Population.load(calibrated)
    assert after.names == tuple(each for each in before.names if each != name)
    assert "20 s" in result.err
    assert "11 speakers left" in result.err
    # who is left is as before, and the rank models say that they owe something to somebody
    for other in after.names:
        i, j = before.index(other), after.index(other)
        mine = before.features["f0"].slices[before.offsets[i] : before.offsets[i + 1]]
        theirs = after.features["f0"].slices[after.offsets[j] : after.offsets[j + 1]]
        assert np.array_equal(mine, theirs)
    assert {
        rank_model.forgotten for rank_model in after.rank_models if rank_model.origin == "own"
    } == {1}
    assert any(rank_model.evidence for rank_model in after.rank_models)
    assert "Calibrate again" in result.err
    heard = run("replay", people / "000002/s1.npz", "-p", calibrated, "--watch", after.names[0])
    assert any("1 deleted speaker " in notice for notice in heard.records[0]["notices"])


def test_one_of_the_cohort_is_forgotten_with_the_evidence(run, calibrated):
    before = Population.load(calibrated)
    assert "neighbour4" in before.cohort.names
    result = run("people", calibrated, "--forget", "neighbour4")
    after = Population.load(calibrated)
    assert len(after.cohort.names) == len(before.cohort.names) - 1
    assert b"neighbour4" not in everything(calibrated)
    assert after.names == before.names
    assert not any(rank_model.evidence for rank_model in after.rank_models)
    assert "evidence is no longer available" in result.err


def test_rank_models_in_a_file_of_their_own(run, people, tmp_path):
    path = tmp_path / "rank_model.npz"
    assert run("calibrate", people, "-o", path, "--lengths", "2,5", "--template-lengths", "10",
               {"replicates": 20, "trials": 4}).code == 0  # fmt: skip
    name = next(iter(load_rank_models(path)[0])).learnt_from[0]
    assert run("people", path, "--forget", name).code == 0
    assert f'"{name}"'.encode() not in everything(path)
    assert next(iter(load_rank_models(path)[0])).forgotten == 1


def test_into_another_file_and_past_another_name(run, calibrated, tmp_path):
    before, name = calibrated.read_bytes(), Population.load(calibrated).names[0]
    path, kept = tmp_path / "rest.npz", tmp_path / "backup.npz"
    kept.hardlink_to(calibrated)
    assert run("people", calibrated, "--forget", name, "-o", path).code == 0
    assert calibrated.read_bytes() == before
    assert name not in Population.load(path).names
    assert run("people", calibrated, "--forget", name).code == 0
    assert kept.read_bytes() == before  # a hard link is not overwritten


def test_a_further_session(run, calibrated, tmp_path):
    path, before = calibrated, Population.load(calibrated)
    name = before.names[5]
    write_corpus(tmp_path / "later", Simulation(5, 8), 1, 1, 40.0)
    (folder,) = (tmp_path / "later").iterdir()
    told = run("enrol", folder, "--speaker", name, "--add", "-o", path, "--seconds", 15)
    assert told.code == 0, told.err
    after = Population.load(path)
    assert after.names == before.names
    assert after.template_seconds[5] == before.template_seconds[5] + 15
    assert len(after.speakers[5].sources) == len(before.speakers[5].sources) + 1
    assert not after.mismatched
    assert f"adds a session of {name}" in told.err
    assert f"{name}: 15 s of speech added, 35 s in all" in told.err
    # what is there is refused, before anything is heard and without a change
    held = path.read_bytes()
    again = run("enrol", folder, "--speaker", name, "--add", "-o", path)
    assert again.code == 2
    assert f"already enrolled as {name}" in again.complaint
    assert path.read_bytes() == held
    # without --add nobody is extended by accident
    assert run("enrol", folder, "--speaker", name, "--base", path, "-o", tmp_path / "n.npz",
               "--features", "f0").code == 2  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("response", "names"), [("note", 52), ("merge", 50), ("drop", 50)])
def test_a_shipped_reader_under_two_more_names(run, shared, tmp_path, response, names):
    for name, chapter in (("mia", "128104"), ("ann", "135031")):
        (tmp_path / "people" / name).mkdir(parents=True)
        path = shared / "speech/dev-clean/1272" / f"{chapter}.opus"
        talk = soundfile.read(path, RATE * 25, RATE * 5, dtype="float32")[0]
        soundfile.write(tmp_path / "people" / name / "talk.wav", talk, RATE)
    result = run(
        *("enrol", tmp_path / "people", "--base", "reference", "--features", "voice"),
        *("-o", tmp_path / "us.npz", {"doubles": response}),
    )
    assert result.code == 0
    for pair in ("ann and mia", "1272 and mia", "1272 and ann"):
        assert f"{pair} sound like one person (probability 9" in result.err
    population, reference = Population.load(tmp_path / "us.npz"), Population.reference()
    assert len(population) == names
    more, fewer = (each.speakers[each.index("1272")].sources for each in (population, reference))
    assert len(more) - len(fewer) == (2 if response == "merge" else 0)
