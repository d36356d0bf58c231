"""One rule for names: which are accepted, and that every spelling of one is the same name."""

import json
from pathlib import Path
from unicodedata import normalize

import numpy as np
import pytest

from monitor import Monitor, Population
from monitor.corpus import Columns, Recording, find
from monitor.errors import SourceError, UsageError
from monitor.lab.evaluation import read_scores
from monitor.ledger import Ledger
from monitor.population.forgetting import forget_people
from monitor.population.people import ManyPeople, Speaker, pack_many
from monitor.population.store import read_store, write_store
from monitor.safe_text import escaped, is_name, printable, spelled
from monitor.serve.templates import TemplateFolder, checked_name
from monitor.sinks.mqtt import identifier
from monitor.training.frames_folder import _safe
from monitor.transcripts import read_transcript, read_turns
from tests.stream.streams import Listed, run_through, two_features
from tests.stream.test_heard import both

JOINED = {
    "Persian": "می‌خواهم",
    "Sinhala": "ශ්‍රී",
    "Malayalam": "ലാല്‍",
    "profession": "👩🏽‍💻",
    "flag": "🏳️‍🌈",
}
SPACED = {"no-break": "Ann\u00a0Lee", "ideographic": "Ann\u3000Lee", "thin": "\u2009Ann Lee "}
HOSTILE = {
    "override": "ann\u202eeel", "isolate": "\u2066ann", "mark": "ann\u200e", "escape": "\x1b[2J",
    "line": "a\nb", "separator": "a\u2028b", "soft hyphen": "a\u00adb", "bom": "\ufeffann",
    "joiner first": "\u200dann", "joiner last": "ann\u200d", "two joiners": "a\u200d\u200cb",
    "joiner of spaces": "a \u200d b", "tag": "🏴\U000e0067", "surrogate": "a\ud800",
    "nothing": "\u3000",
}  # fmt: skip
COMPOSED, DECOMPOSED = normalize("NFC", "Zoë"), normalize("NFD", "Zoë")
NAMES = [*JOINED.values(), *SPACED.values(), DECOMPOSED]


@pytest.mark.parametrize("name", [*JOINED.values(), COMPOSED, "李 明"])
def test_joiners_are_part_of_a_name(name):
    assert is_name(name)
    assert printable(name) == escaped(name) == spelled(name) == name


@pytest.mark.parametrize("name", SPACED.values(), ids=SPACED)
def test_every_space_is_a_plain_one(name):
    assert is_name(name)
    assert printable(name).strip() == spelled(name) == "Ann Lee"


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_what_steers_a_terminal_or_cannot_be_seen_is_no_name(name):
    assert not is_name(name)
    assert printable(name).isprintable()
    assert escaped(name).isprintable()


def corpora(folder: Path, name: str) -> dict[str, Path]:
    """The same recording of one speaker as every layout has it."""
    made = {kind: folder / kind for kind in ("folders", "manifest", "kaldi", "hf")}
    for path in made.values():
        path.mkdir()
        (path / "a.wav").touch()
    (made["folders"] / name).mkdir()
    (made["folders"] / "a.wav").rename(made["folders"] / name / "a.wav")
    (made["manifest"] / "manifest.csv").write_text(f"path,speaker\na.wav,{name}\n")
    (made["kaldi"] / "wav.scp").write_text("u1 a.wav\n")
    (made["kaldi"] / "utt2spk").write_text(f"u1 {name}\n")
    (made["hf"] / "metadata.jsonl").write_text(json.dumps({"file_name": "a.wav", "who": name}))
    return made


@pytest.mark.parametrize("name", NAMES)
def test_every_layout_of_a_corpus_gives_a_name_in_one_spelling(tmp_path, name):
    for kind, path in corpora(tmp_path, name).items():
        corpus = find(path, columns=Columns("who") if kind == "hf" else Columns())
        assert corpus.speakers == (spelled(name),), kind
        assert not corpus.problems
    assert find(tmp_path / "hf", speaker=name).speakers == (spelled(name),)
    assert Recording(name, "1", Path("a.wav")).speaker == spelled(name)


@pytest.mark.parametrize(("disk", "listed"), [(DECOMPOSED, COMPOSED), (COMPOSED, DECOMPOSED)])
def test_a_file_is_found_however_its_name_is_spelled(tmp_path, disk, listed):
    (tmp_path / disk).mkdir()
    (tmp_path / disk / f"{disk} 1.wav").touch()
    for name, text in {
        "manifest.csv": f"path,speaker\n{listed}/{listed} 1.wav,ann\n",
        "wav.scp": f"u1 {listed}/{listed} 1.wav\n",
        "metadata.csv": f"file_name,who\n{listed}/{listed} 1.wav,ann\n",
    }.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "utt2spk").write_text("u1 ann\n")
    found = [
        find(tmp_path / "manifest.csv"),
        find(tmp_path / "metadata.csv", columns=Columns("who")),
    ]
    (tmp_path / "manifest.csv").unlink()
    for corpus in (*found, find(tmp_path)):
        assert [Path(str(recording.path)).exists() for recording in corpus] == [True]
        assert not corpus.problems


TURNS = {
    "rttm": "SPEAKER call 1 0.50 2.00 <NA> <NA> {} <NA> <NA>\n",
    "txt": "0.5\t2.5\t{}\n",
    "json": '[{{"start": 0.5, "end": 2.5, "speaker": "{}"}}]',
    "vtt": "WEBVTT\n\n00:00.500 --> 00:02.500\n<v {}>so it\n",
}


@pytest.mark.parametrize("kind", TURNS)
@pytest.mark.parametrize("name", NAMES)
def test_turns_and_transcripts_give_a_name_in_one_spelling(tmp_path, name, kind):
    path = tmp_path / f"call.{kind}"
    path.write_text(TURNS[kind].format(name))
    assert read_turns(path).labels == (spelled(name),)
    if kind == "vtt":
        for speaker in (name, spelled(name)):
            assert read_transcript(path, speaker=speaker).speakers == (spelled(name),)


def test_the_recording_of_an_rttm_is_found_however_it_is_spelled(tmp_path):
    path = tmp_path / "all.rttm"
    rows = [f"SPEAKER {name} 1 0 2 <NA> <NA> of-{name} <NA> <NA>\n" for name in ("bob", DECOMPOSED)]
    path.write_text("".join(rows))
    assert read_turns(path, recording=COMPOSED).labels == (f"of-{COMPOSED}",)
    with pytest.raises(SourceError, match="2 recordings"):
        read_turns(path, recording="Zoe")


def household() -> Population:
    names = (COMPOSED, "bob", "cem", "dan", "eva", "fay")
    return two_features().with_details([Speaker(name) for name in names])


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A population as an earlier version stored it, with a decomposed name."""
    path = tmp_path / "people.npz"
    household().save(path)
    header, arrays = read_store(path, "population")
    header["speakers"][0]["name"] = DECOMPOSED
    write_store(path, "population", header, arrays)
    return path


@pytest.mark.parametrize("name", [COMPOSED, DECOMPOSED, f"{COMPOSED}\u00a0"])
def test_a_stored_name_is_found_in_every_spelling(stored, name):
    population = Population.load(stored)
    assert population.index(name) == 0
    assert Monitor(population, watch=name).watch == population.names[0] == COMPOSED
    assert len(population.without(name)) == 5
    with pytest.raises(UsageError, match="enrolled already"):
        population.joined(population.chosen([name]))
    (forgotten,) = forget_people(stored, [name]).values()
    assert forgotten.remaining == 5
    assert Population.load(stored).names == ("bob", "cem", "dan", "eva", "fay")


def test_a_mapped_store_gives_names_in_one_spelling():
    arrays = pack_many([Speaker("ann"), Speaker("bob")])
    names = f"{DECOMPOSED}\n{JOINED['Persian']}".encode()
    arrays["people/names"] = np.frombuffer(names, np.uint8)
    assert ManyPeople(arrays).names == (COMPOSED, JOINED["Persian"])


def test_a_ledger_knows_a_speaker_in_every_spelling(tmp_path):
    path = tmp_path / "ledger.db"

    def listen(seed: int) -> None:
        monitor = Monitor(household(), ("f0", "timbre"), watch=DECOMPOSED)
        run_through(Listed([both(12.0, seed)], ["talk"]), monitor, sinks=[], ledger=path)

    listen(1)
    with Ledger(path) as ledger:
        ledger.connection.execute(
            "UPDATE speakers SET name = ?", (DECOMPOSED,)
        )  # an earlier version
        ledger.connection.commit()
    listen(2)
    with Ledger(path) as ledger:
        assert len(ledger.sessions(COMPOSED)) == len(ledger.sessions(DECOMPOSED)) == 2
        assert ledger.history(COMPOSED)
        assert ledger.forget(COMPOSED) == 2
        assert not ledger.sessions()


def test_scores_and_trials_match_in_every_spelling(tmp_path):
    scores, trials = tmp_path / "scores", tmp_path / "trials"
    scores.write_text(f"{DECOMPOSED} u1 0.9\nbob u1 0.2\n{DECOMPOSED} u2 0.3\nbob u2 0.4\n")
    trials.write_text(
        f"{COMPOSED} u1 target\nbob u1 nontarget\n{COMPOSED} u2 nontarget\nbob u2 target\n"
    )
    assert read_scores(scores, trials).matrix.speakers == (COMPOSED, "bob")


def test_topics_of_different_names_differ():
    names = [
        "kuche",
        "Küche",
        "Kuche's",
        "kuche!",
        "küche 2",
        "客厅",
        "客房",
        "🏠",
        *JOINED.values(),
    ]
    topics = [identifier(name) for name in names]
    assert len(set(topics)) == len(names)
    assert all(topic.isascii() and topic.replace("_", "").isalnum() for topic in topics)
    assert identifier(normalize("NFD", "Küche")) == identifier("Küche")
    assert identifier("Living\u00a0room") == identifier("living room") == "living_room"


def test_the_page_keeps_a_name_in_one_spelling(tmp_path):
    assert checked_name(JOINED["Persian"]) == JOINED["Persian"]
    assert checked_name(f"{DECOMPOSED}\u3000Lee") == f"{COMPOSED} Lee"
    for name in (HOSTILE["override"], HOSTILE["joiner last"], "a/b"):
        with pytest.raises(UsageError, match="a name has letters"):
            checked_name(name)
    (tmp_path / f"{DECOMPOSED}.npz").touch()  # as some disks spell it
    folder = TemplateFolder(tmp_path)
    assert [person.name for person in folder.people()] == [COMPOSED]
    folder.forget(COMPOSED)
    assert not list(tmp_path.iterdir())


def test_names_of_files_keep_joiners_and_lead_nowhere():
    assert _safe(JOINED["Persian"]) == JOINED["Persian"]
    assert _safe("../a\x07:b") == "_._a__b"
