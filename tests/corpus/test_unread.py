"""Folders with a table or manifest that is not understood: refused, with what to write."""

import gzip
import json
from contextlib import AbstractContextManager
from io import BufferedReader
from pathlib import Path

import pytest
import soundfile

from monitor.corpus import Columns, find
from monitor.corpus.folders import find_others, is_data_set
from monitor.datasets import unread
from monitor.datasets.opening import open_bytes
from monitor.errors import CorpusError
from monitor.virtual_files import files_of
from tests.corpus.test_data_sets import CUT, labels, parquet
from tests.corpus.test_finding import make
from tests.sounds import RATE, synthetic

CSV = "file_name,speaker_id\ntrain/a.wav,ann\ntest/b.wav,bob\n"
ROWS = [
    {"file_name": "train/a.wav", "speaker_id": "ann"},
    {"file_name": "test/b.wav", "speaker_id": "bob"},
]
LINES = "".join(f"{json.dumps(row)}\n" for row in ROWS)
CUTS = f"{json.dumps(CUT)}\n"
HEADER = "write the header file_name,speaker_id"

REFUSED: dict[str, list[tuple[str | bytes, str]]] = {
    "metadata.csv": [
        (CSV.replace(",", ";"), f"has semicolons between its columns: {HEADER}"),
        (CSV.replace(",", "\t"), f"has tabs between its columns: {HEADER}"),
        ("LJ001-0001|Printing|Printing\n", f"has bars between its columns: {HEADER}"),
        (CSV.encode("utf-16"), "is UTF-16 text: save it as UTF-8"),
        (CSV.encode("utf-16-le"), "is UTF-16 text"),
        (CSV.partition("\n")[2], HEADER),
        (CSV.replace("file_name", "filename"), HEADER),
        (CSV.replace("file_name", "path"), HEADER),
        (CSV.replace("file_name", "File_Name"), HEADER),
        ("", "is empty"),
        ("\r", "is empty"),
    ],
    "Metadata.CSV": [(CSV, "write the header")],
    "metadata.tsv": [(CSV.replace(",", "\t"), "write metadata.csv with the header")],
    "metadata.xlsx": [(b"PK\3\4", "write metadata.csv with the header")],
    "metadata.csv.gz": [(gzip.compress(CSV.encode()), "is compressed: unpack it")],
    "metadata.jsonl": [
        (json.dumps(ROWS), 'lines such as {"file_name": "a.wav"'),
        (json.dumps(ROWS[0], indent=1), 'lines such as {"file_name": "a.wav"'),
        (LINES.encode("utf-16"), "is UTF-16 text"),
    ],
    "metadata.json": [(json.dumps(ROWS), "write metadata.jsonl")],
    "manifest.json": [(LINES, "write manifest.csv with the header path,speaker,session")],
    "utt2spk": [("a ann\nb bob\n", "needs wav.scp beside it")],
    "spk2utt": [("ann a\nbob b\n", "needs wav.scp beside it")],
    "segments": [("a x 0 1\n", "needs wav.scp beside it")],
    "wav.scp.gz": [(gzip.compress(b"a train/a.wav\n"), "is compressed: unpack it")],
    "wav.scp.txt": [("a train/a.wav\n", "needs wav.scp")],
    "cuts.jsonl": [
        ("", "is empty"),
        (json.dumps([CUT]), "does not begin with a cut"),
        (CUTS.encode("utf-16"), "is UTF-16"),
    ],
    "cuts.jsonl.gz": [
        (gzip.compress(b""), "is empty"),
        (gzip.compress(CUTS.encode())[:-30], "cannot be read"),
        (b"no gzip at all", "cannot be read"),
    ],
    "cuts_train.json": [(json.dumps([CUT]), "lhotse copy cuts_train.json cuts_train.jsonl.gz")],
    "x_supervisions.yaml": [("- id: a\n", "lhotse copy x_supervisions.yaml")],
    "recordings.jsonl.bz2": [(b"BZh9", "is compressed")],
    "validated.tsv.gz": [(gzip.compress(b"client_id\tpath\n"), "is compressed")],
    "train/manifest.csv": [("path,speaker\na.wav,ann\n", "give corpus/train, or move it")],
    "train/wav.scp": [("a a.wav\n", "give corpus/train, or move it")],
    "speech.csv": [
        ("path,who\ntrain/a.wav,ann\ntest/b.wav,bob\n", "write manifest.csv"),
        ("path,who\ntrain/a.wav,ann\ntest/b.wav,bob\n".encode("utf-16"), "is UTF-16 text"),
    ],
    "people.csv": [("path,speaker\ntrain/a.wav,ann\ntest/b.wav,bob\n", "give corpus/people.csv")],
    "clips.tsv": [("client_id\tpath\nx\ta.wav\ny\tb.wav\n", "give corpus/clips.tsv itself")],
    "list.json": [
        (json.dumps([{"audio": "a.wav"}, {"audio": "b.wav"}]), "write manifest.csv"),
    ],
    "list.jsonl": [('{"audio_filepath": "a.wav"}\n{"audio_filepath": "b.wav"}\n', "manifest.csv")],
    "list.tsv.gz": [(gzip.compress(b"a.wav\tann\nb.wav\tbob\n"), "is compressed")],
    "x.parquet": [(b"version https://git-lfs.github.com/spec/v1\noid x\n", "run git lfs pull")],
}  # fmt: skip


def corpus_of(root: Path, *folders: str) -> Path:
    root = root / "corpus"
    make(root, *(f"{folder}/{name}.wav" for folder, name in zip(folders, "ab", strict=True)))
    return root


def refusal(path: Path, *columns: str) -> str:
    with pytest.raises(CorpusError) as refused:
        find(path, columns=Columns(*columns))
    assert str(refused.value).isprintable()
    return str(refused.value)


@pytest.mark.parametrize("folders", [("train", "test"), ("ann", "bob")], ids=["splits", "people"])
@pytest.mark.parametrize(
    ("name", "content", "words"),
    [(name, *case) for name, cases in REFUSED.items() for case in cases],
    ids=[f"{name}-{n}" for name, cases in REFUSED.items() for n in range(len(cases))],
)
def test_a_table_that_is_not_understood_is_refused(tmp_path, folders, name, content, words):
    root = corpus_of(tmp_path, *folders)
    name = name.replace("train/", f"{folders[0]}/")
    (root / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    for columns in ((), ("speaker_id",)):
        said = refusal(root, *columns)
        assert said.startswith(name)
        assert words.replace("corpus/train", f"corpus/{folders[0]}") in said


@pytest.mark.parametrize("name", ["metadata.parquet", "speech.parquet"])
def test_parquet_that_lists_recordings_is_refused(tmp_path, name):
    root = corpus_of(tmp_path, "ann", "bob")
    parquet(root / name, file_name=["ann/a.wav"], who=["ann"])
    assert name in refusal(root)


def test_one_table_of_two_that_is_not_understood_is_refused(tmp_path):
    """What the other lists would be left out in silence."""
    root = corpus_of(tmp_path, "train", "test")
    (root / "train" / "metadata.csv").write_text("file_name,who\na.wav,ann\n")
    assert find(root, columns=Columns("who")).speakers == ("ann",)
    (root / "test" / "metadata.csv").write_text("file_name;who\nb.wav;bob\n")
    assert "test/metadata.csv has semicolons" in refusal(root, "who")
    (root / "cuts.jsonl").write_text(CUTS)
    (root / "cuts_2.jsonl").write_text("")
    assert "cuts_2.jsonl is empty" in refusal(root)


@pytest.mark.parametrize("name", ["metadata.csv", "manifest.json", "cuts.jsonl", "cuts.json"])
def test_a_file_of_that_kind_is_refused_as_the_folder_is(tmp_path, name):
    root = corpus_of(tmp_path, "ann", "bob")
    (root / name).write_text("[]\n")
    assert name in refusal(root / name)


@pytest.mark.parametrize(
    "folders",
    [
        ("clips", "clips"), ("wav", "wav"), ("wavs", "wavs"), ("wav48", "wav48_silence_trimmed"),
        ("train", "Test"), ("dev", "valid"), ("data", "audio"), ("train-clean-100", "dev_other"),
    ],
)  # fmt: skip
def test_folders_of_a_data_set_are_no_speakers(tmp_path, folders):
    root = corpus_of(tmp_path, *folders)
    said = refusal(root)
    assert folders[0] in said
    assert "path,speaker,session" in said
    assert "--speaker NAME" in said
    assert find(root, speaker="ann").speakers == ("ann",)
    make(root, f"{folders[0]}/p225/a.wav", f"{folders[0]}/p226/a.wav")
    assert f"give corpus/{folders[0]} if each folder in it is a speaker" in refusal(root)
    make(root, "ann/c.wav")
    assert "ann" in find(root).speakers


def test_what_is_no_table_of_recordings_stays_beside_them(tmp_path):
    """Transcripts, labels of speakers, what this program wrote, and other texts."""
    root = corpus_of(tmp_path, "ann", "bob")
    texts = {
        "groups.csv": "speaker,gender\nann,f\nbob,m\n",
        "ann/a.json": '{"text": "a.wav and b.wav"}',
        "ann/a.tsv": "start\tend\ttext\n0\t1\ta.wav b.wav\n",
        "talks.csv": "recording,seconds,speech,bits\nann/a.wav,1,1,2\nbob/b.wav,1,1,2\n",
        "ann/recordings.jsonl": '{"schema": 1, "sizes": {"f0": 10}}\n',
        "words.trans.tsv": "a\thello\nb\tworld\n",
        "README.md": "a.wav and b.wav\n",
        "settings.json": '{"rate": 16000}',
    }
    for name, text in texts.items():
        (root / name).write_text(text)
    assert labels(find(root)) == [("ann", "a"), ("ann", "recordings"), ("bob", "b")]


def test_a_byte_order_mark_and_the_case_of_a_name_do_not_matter(tmp_path):
    root = tmp_path / "corpus"
    for name in ("train/a.wav", "test/b.wav"):
        (root / name).parent.mkdir(parents=True)
        soundfile.write(root / name, synthetic(1.0), RATE)
    cuts = root / "cuts.jsonl"
    text = CUTS.replace("a.wav", "train/a.wav")
    cuts.write_text(f"\ufeff{text}", encoding="utf-8")
    assert labels(find(root)) == [("ann", "r")]
    cuts.unlink()
    (root / "metadata.jsonl").write_text("\ufeff" + LINES, encoding="utf-8")
    assert find(root, columns=Columns("speaker_id")).speakers == ("ann", "bob")
    (root / "metadata.jsonl").unlink()
    (root / "Manifest.CSV").write_text("\ufeffPath,Speaker\ntrain/a.wav,ann\n", encoding="utf-8")
    assert find(root).speakers == ("ann",)


COMMON_VOICE = (
    "client_id\tpath\tsentence\tup_votes\tage\tgender\n"
    'abc\tone.wav\tShe said "no\t2\t\tfemale\n'
    "def\ttwo.wav\tYes\t2\ttwenties\tmale\n"
)


def test_common_voice_is_read(tmp_path):
    make(tmp_path, "clips/one.wav", "clips/two.wav", "clips/three.wav")
    for name in ("validated.tsv", "train.tsv"):
        (tmp_path / name).write_text(COMMON_VOICE)
        (tmp_path / "clip_durations.tsv").write_text("clip\tduration[ms]\none.wav\t4000\n")
        for place in (tmp_path, tmp_path / name):
            corpus = find(place)
            assert labels(corpus) == [("abc", "one"), ("def", "two")]
            assert {files_of(r.path)[0].parent.name for r in corpus} == {"clips"}
            assert corpus.attributes == {
                "gender": {"abc": "female", "def": "male"}, "age": {"def": "twenties"},
            }  # fmt: skip
    assert find(tmp_path, columns=Columns("gender")).speakers == ("female", "male")
    assert not is_data_set(tmp_path)
    (tmp_path / "clips").rename(tmp_path / "sounds")
    assert "needs the folder clips beside it" in refusal(tmp_path)


def test_a_corpus_beside_another_is_read_the_same_way(tmp_path):
    root = corpus_of(tmp_path, "train", "test")
    (root / "metadata.csv").write_text(CSV.replace(",", ";"))
    with pytest.raises(CorpusError, match="has semicolons"):
        find_others(root, Columns("speaker_id"))


def test_the_beginning_of_a_refused_table_is_read_once(tmp_path, monkeypatch):
    make(tmp_path, "ann/a.wav", "bob/b.wav")
    (tmp_path / "list.csv").write_text("path;speaker\nann/a.wav;ann\nbob/b.wav;bob\n")
    opened = list[str]()

    def read(path: Path) -> AbstractContextManager[BufferedReader]:
        opened.append(path.name)
        return open_bytes(path)

    monkeypatch.setattr(unread, "open_bytes", read)
    with pytest.raises(CorpusError, match=r"list\.csv"):
        find(tmp_path)
    assert opened.count("list.csv") == 1
