"""Data sets that `datasets` and lhotse wrote, and hostile ones."""

import csv
import gzip
import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from monitor.corpus import Columns, find
from monitor.datasets.lhotse import Clip
from monitor.errors import CorpusError, SourceError, UsageError
from monitor.sources import File
from monitor.sources.registry import provenance_of, recording_hashes
from monitor.training.enrolling import enrol
from tests.sounds import RATE, synthetic

BY_ID = Columns("speaker_id", "chapter")


def labels(corpus):
    return [(recording.speaker, recording.session) for recording in corpus]


def samples_of(recording) -> np.ndarray:
    return np.concatenate([block.samples for block in File(recording.path).blocks()])


def sound(seed: int, seconds: float = 1.0) -> np.ndarray:
    noise = np.random.default_rng(seed).integers(-9000, 9000, round(seconds * RATE))
    return (noise / 32768).astype(np.float32)


def flac(samples: np.ndarray) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, samples, RATE, format="FLAC")
    return file.getvalue()


# --- Hugging Face.

ROWS = [  # what `datasets` calls a file, speaker, chapter, gender
    ("b.flac", "ann", "1", "f"),
    ("a.flac", "ann", "2", "f"),
    ("c.flac", "bob", "1", "m"),
]


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_a_folder_of_audio_with_its_metadata(tmp_path, suffix):
    """As its builder has them: a table in each split, paths relative to it."""
    for number, (split, rows) in enumerate([("train", ROWS[:2]), ("test", ROWS[2:])]):
        (tmp_path / split / "audio").mkdir(parents=True)
        table = [
            {"file_name": f"audio/{file}", "speaker_id": who, "chapter": chapter, "gender": gender}
            for file, who, chapter, gender in rows
        ]
        for row in table:
            (tmp_path / split / row["file_name"]).write_bytes(flac(sound(number)))
        with (tmp_path / split / f"metadata.{suffix}").open("w") as file:
            if suffix == "csv":
                writer = csv.DictWriter(file, table[0])
                writer.writeheader()
                writer.writerows(table)
            else:
                file.writelines(f"{json.dumps(row)}\n" for row in table)
    corpus = find(tmp_path, columns=BY_ID)
    assert labels(corpus) == [("ann", "1"), ("ann", "2"), ("bob", "1")]
    assert corpus.attributes == {"gender": {"ann": "f", "bob": "m"}}
    assert corpus.problems == ()
    part = find(tmp_path / "train" / f"metadata.{suffix}", columns=Columns("speaker_id"))
    assert labels(part) == [("ann", "audio/a"), ("ann", "audio/b")]
    assert "each file a session" in part.identified_by


def write_parquet(path: Path, sounds: list[np.ndarray], rows=ROWS, **options: int) -> None:
    datasets = pytest.importorskip("datasets", reason="needs the extra all-tests")
    audio = [
        {"bytes": flac(samples), "path": row[0]} for samples, row in zip(sounds, rows, strict=True)
    ]
    table = {"audio": audio, "number": list(range(7, 7 + len(rows)))}
    table |= {name: [row[i] for row in rows] for i, name in [(1, "speaker_id"), (2, "chapter")]}
    made = datasets.Dataset.from_dict(table).cast_column(
        "audio", datasets.Audio(sampling_rate=RATE)
    )
    names = datasets.ClassLabel(names=["bob", "ann"])
    made.cast_column("speaker_id", names).to_parquet(str(path), **options)


@pytest.mark.slow
def test_parquet_that_datasets_wrote(tmp_path):
    """Names of classes, several row groups, and sound equal to the file that went in."""
    sounds = [sound(i) for i in range(3)]
    (tmp_path / "data").mkdir()
    write_parquet(tmp_path / "data" / "train-00000-of-00001.parquet", sounds, batch_size=2)
    corpus = find(tmp_path, columns=BY_ID)
    assert labels(corpus) == [("ann", "1"), ("ann", "2"), ("bob", "1")]
    for recording, samples in zip(corpus, sounds, strict=True):
        assert np.array_equal(samples_of(recording), samples)
    for recording, samples in reversed([*zip(corpus, sounds, strict=True)]):
        assert np.array_equal(samples_of(recording), samples)
    (tmp_path / "b.flac").write_bytes(flac(sounds[0]))
    assert recording_hashes(corpus.recordings[0].path) == recording_hashes(tmp_path / "b.flac")
    whole_numbers = find(tmp_path, columns=Columns("number"))
    assert whole_numbers.speakers == ("7", "8", "9")
    assert len(whole_numbers.sessions("7")) == 1


def parquet(path: Path, **columns: object) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table(columns), path)


AUDIO = [{"bytes": b"no sound", "path": "a"}, {"bytes": None, "path": "https://x/a.wav"}]


@pytest.mark.parametrize(
    ("columns", "named", "words"),
    [
        ({"audio": AUDIO, "who": ["a", "b"]}, (), "choose one of who with --columns speaker=NAME"),
        (
            {"audio": AUDIO, "who": ["a", "b"]},
            ("me",),
            "no column 'me' for the speaker: choose one of who",
        ),
        ({"audio": AUDIO, "who": ["a", "b"]}, ("who", "day"), "no column 'day' for the session"),
        ({"audio": AUDIO, "who": [[1], [2]]}, ("who",), "and no column has text or whole"),
        (
            {"audio": AUDIO, "who": [[1], [2]], "day": [1, 2]},
            ("who",),
            "has the type list<element: int64>: use one of day",
        ),
        ({"audio": AUDIO, "who": [{"id": "a"}] * 2}, ("who",), ": use one of who.id"),
        ({"audio": AUDIO}, (), "no known column for the speaker, nor any other column: add one"),
        ({"audio": AUDIO, "who": [1.5, 2.0]}, ("who",), "has double"),
        ({"audio": ["a.wav", "b.wav"], "who": ["a", "b"]}, ("who",), "has no audio"),
        (
            {"x": AUDIO, "y": AUDIO, "who": ["a", "b"]},
            ("who",),
            "choose one of x, y with --columns",
        ),
        ({"audio": AUDIO, "who": [None, "\x1b"]}, ("who",), "row 0: who is empty"),
    ],
)
def test_parquet_that_names_nobody_is_refused(tmp_path, columns, named, words):
    parquet(tmp_path / "x.parquet", **columns)
    with pytest.raises(CorpusError) as refused:
        find(tmp_path, columns=Columns(*named))
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_parquet_of_every_type_that_can_name_a_speaker(tmp_path):
    """As pyarrow, pandas and polars write them; pandas' integers with nulls are floats."""
    pa = pytest.importorskip("pyarrow")
    heard = flac(sound(0))
    audio = pa.array([{"bytes": heard, "path": "a"}] * 3)
    views = [pa.array([heard] * 3, pa.binary_view()), pa.array(["a"] * 3)]
    audios = {
        "struct": audio,
        "view": pa.StructArray.from_arrays(views, ["bytes", "path"]),
        "encoded": pa.array([heard] * 3).dictionary_encode(),
    }
    texts, numbers = pa.array(["7", None, "8"]), pa.array([7, None, 8])
    columns = {
        "string_view": texts.cast(pa.string_view()),
        "large": texts.cast(pa.large_string()),
        "encoded": texts.dictionary_encode(),
        "integer": numbers,
        "unsigned": numbers.cast(pa.uint8()),
        "encoded_integer": numbers.dictionary_encode(),
        "pandas": pa.array([7.0, float("nan"), 8.0]),
        "nulls": numbers.cast(pa.float32()),
        "struct": pa.array([{"id": "7", "x": {"n": 7}}, None, {"id": "8", "x": {"n": 8}}]),
    }
    names = [*columns.keys() - {"struct"}, "struct.id", "struct.x.n"]
    for kind, cells in audios.items():
        path = tmp_path / f"{kind}.parquet"
        parquet(path, audio=cells, **columns)
        for name in names:
            corpus = find(path, columns=Columns(name, audio="audio"))
            assert corpus.speakers == ("7", "8"), name
            assert corpus.problems == (f"{kind}.parquet row 1: {name} is empty",), name
        assert np.array_equal(samples_of(corpus.recordings[1]), sound(0))


def test_damaged_parquet_is_refused_or_skipped(tmp_path):
    path = tmp_path / "x.parquet"
    parquet(path, audio=AUDIO, who=["a", "b"])
    corpus = find(path, columns=Columns("who"))
    for recording, words in zip(corpus, ["not a readable recording", "only a path"], strict=True):
        with pytest.raises(SourceError, match=words):
            File(recording.path)
    whole = path.read_bytes()
    for damaged in (whole[:-20], whole[:4] + bytes(len(whole) - 40) + whole[-36:], b"PAR1"):
        path.write_bytes(damaged)
        with pytest.raises((CorpusError, SourceError)):
            File(next(iter(find(path, columns=Columns("who")))).path)


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(UsageError, match=r"pip install 'speaker-disclosure-monitor\[tables\]'"):
        find(tmp_path, columns=Columns("who"))


def test_a_table_beside_recordings_is_no_data_set(tmp_path):
    """As `monitor replay --each --summary talks.parquet` leaves one."""
    (tmp_path / "ann").mkdir()
    (tmp_path / "ann" / "a.wav").write_bytes(flac(sound(0)))
    columns = {"recording": ["ann/a.wav"], "seconds": [1.0], "speech": [0.5], "bits": [2.0]}
    parquet(tmp_path / "talks.parquet", **columns)
    (tmp_path / "talks.csv").write_text("recording,seconds,speech,bits\nann/a.wav,1,0.5,2\n")
    assert labels(find(tmp_path)) == [("ann", "a")]


def test_a_few_bytes_are_no_million_rows(tmp_path):
    """A column of one value is run-length encoded: it costs memory when it is read."""
    path = tmp_path / "x.parquet"
    pa = pytest.importorskip("pyarrow")
    none = pa.nulls(1_000_000, pa.struct({"bytes": pa.binary(), "path": pa.string()}))
    parquet(path, audio=none, who=["a" * 99] * 1_000_000)
    assert path.stat().st_size < 1 << 20
    with pytest.raises(CorpusError, match="claims 1000000 rows"):
        find(path, columns=Columns("who"))


def test_rows_of_metadata_that_cannot_be_used_are_named(tmp_path):
    (tmp_path / "set").mkdir()
    (tmp_path / "out.wav").write_bytes(flac(sound(0)))
    (tmp_path / "set" / "a.wav").write_bytes(flac(sound(0)))
    files = {
        "../out.wav": "leaves the folder", str(tmp_path / "out.wav"): "leaves the folder",
        "https://x/a.wav": "is a URL", "gone.wav": "is missing", "": "names no file",
        "a.wav": "", "./a.wav": "is listed twice",
    }  # fmt: skip
    rows = "".join(f"{json.dumps({'file_name': file, 'who': 'ann'})}\n" for file in files)
    text = f'{rows}[1]\nno JSON\n{{"file_name": "b.wav", "who": {{}}}}\n'
    (tmp_path / "set" / "metadata.jsonl").write_text(text)
    corpus = find(tmp_path / "set", columns=Columns("who"))
    assert [recording.path.name for recording in corpus] == ["a.wav"]
    problems = [
        *filter(None, files.values()),
        "not a JSON object",
        "is not JSON",
        "not text or a whole",
    ]
    for words in problems:
        assert any(words in problem for problem in corpus.problems), words
    assert len(corpus.problems) == len(problems)


# --- lhotse.


@pytest.fixture
def meeting(tmp_path):
    """Recordings of two channels: noise, and two people in turns of 2 s; and lhotse's lists."""
    lhotse = pytest.importorskip("lhotse", reason="needs the extra all-tests")
    recordings, supervisions = [], []
    for day in ("monday", "friday"):
        talk = np.stack([sound(9, 12.0), sound(ord(day[0]), 12.0)], axis=1)
        soundfile.write(tmp_path / f"{day}.flac", talk, RATE)
        recordings.append(lhotse.Recording.from_file(tmp_path / f"{day}.flac"))
        supervisions += [
            lhotse.SupervisionSegment(
                f"{day}-{i}", day, 2.0 * i, 2.0, channel=1, speaker=("ann", "bob")[i % 2],
                gender="fm"[i % 2], custom={"week": 3},
            )
            for i in range(6)
        ]  # fmt: skip
    return (
        lhotse.RecordingSet.from_recordings(recordings),
        lhotse.SupervisionSet.from_segments(supervisions),
    )


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["cuts.jsonl.gz", "trimmed_cuts.jsonl", "folder", "file"])
def test_manifests_that_lhotse_wrote(tmp_path, meeting, layout):
    """Only these seconds of that channel, whichever way they are listed, each once."""
    from lhotse import CutSet

    folder = tmp_path / "manifests"
    folder.mkdir()
    recordings, supervisions = meeting
    place = folder / layout
    if "cuts" in layout:
        cuts = CutSet.from_manifests(recordings=recordings, supervisions=supervisions)
        (cuts.trim_to_supervisions() if "trimmed" in layout else cuts).to_file(place)
    else:
        recordings.to_file(folder / "x_recordings_dev.jsonl.gz")
        supervisions.to_file(folder / "x_supervisions_dev.jsonl.gz")
        place = folder if layout == "folder" else folder / "x_supervisions_dev.jsonl.gz"
    corpus = find(place)
    assert labels(corpus) == [(who, day) for who in ("ann", "bob") for day in ("friday", "monday")]
    assert corpus.attributes["gender"] == {"ann": "f", "bob": "m"}
    for recording in corpus:
        first = 0 if recording.speaker == "ann" else 2
        talk = sound(ord(recording.session[0]), 12.0)
        turns = [talk[begin * RATE : (begin + 2) * RATE] for begin in range(first, 12, 4)]
        assert np.array_equal(samples_of(recording), np.concatenate(turns))
    part = provenance_of(corpus.recordings[0].path)
    assert (part.start_seconds, part.end_seconds) == (0.0, 10.0)
    assert set(recording_hashes(tmp_path / "friday.flac")) < set(part.hashes)
    assert (
        labels(find(place, columns=Columns(session="week")))
        == [("ann", "3")] * 2 + [("bob", "3")] * 2
    )
    with pytest.raises(
        CorpusError, match=r"no column 'who'.*recording_id.*with --columns speaker="
    ):
        find(place, columns=Columns("who"))


@pytest.mark.slow
def test_a_recording_that_is_one_utterance_is_read_as_it_is(tmp_path):
    lhotse = pytest.importorskip("lhotse", reason="needs the extra all-tests")
    soundfile.write(tmp_path / "a.flac", sound(0, 3.0), RATE)
    recording = lhotse.Recording.from_file(tmp_path / "a.flac")
    whole = lhotse.SupervisionSegment("a", "a", 0.0, 3.0, speaker="ann")
    cut = lhotse.MonoCut("a", 0.0, 3.0, 0, supervisions=[whole], recording=recording)
    twice = lhotse.MonoCut("b", 1.0, 2.0, 0, supervisions=[whole], recording=recording)
    for cuts in ([cut], [cut, twice]):
        lhotse.CutSet.from_cuts(cuts).to_file(tmp_path / "cuts.jsonl")
        assert [r.path for r in find(tmp_path / "cuts.jsonl")] == [tmp_path / "a.flac"]
    part = lhotse.MonoCut("a", 1.5, 1.0, 0, supervisions=[whole.with_offset(-1)],
                          recording=recording)  # fmt: skip
    lhotse.CutSet.from_cuts([part]).to_file(tmp_path / "cuts.jsonl")
    clip = next(iter(find(tmp_path / "cuts.jsonl"))).path
    assert clip == Clip(tmp_path / "a.flac", ((1.5, 2.5),), (0,))


CUT = {
    "id": "c", "start": 0.0, "duration": 1.0, "channel": 0, "type": "MonoCut",
    "supervisions": [{"id": "s", "recording_id": "r", "start": 0.0, "duration": 1.0, "channel": 0,
                      "speaker": "ann"}],
    "recording": {"id": "r", "sampling_rate": RATE, "num_samples": RATE, "duration": 1.0,
                  "sources": [{"type": "file", "channels": [0], "source": "a.wav"}]},
}  # fmt: skip


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("recording.sources.0.type", "url", "of the type 'url': only files"),
        (
            "recording.sources.0.type",
            "command",
            "only files are read, and nothing is fetched or run",
        ),
        ("recording.sources.0.source", "s3://bucket/a.wav", "is a URL"),
        ("recording.sources.0.source", "gone.wav", "is missing"),
        ("recording.sources.0.source", None, "names no file"),
        ("recording.sources.0.channels", ["x"], "a channel is invalid"),
        ("recording.sources", [], "no source"),
        ("recording.transforms", [{"name": "Speed"}], "is transformed"),
        ("recording", None, "without its recording"),
        ("channel", 3, "no single source"),
        ("supervisions", [], "no supervision"),
        ("supervisions.0.speaker", 1.5, "speaker is empty, or neither text"),
        ("supervisions.0.start", "0", "start is not a number"),
        ("duration", -1.0, "too small"),
        ("type", "MixedCut", "which has no audio file"),
    ],
)
def test_cuts_that_cannot_be_used_are_named(tmp_path, path, value, words):
    soundfile.write(tmp_path / "a.wav", sound(0), RATE)
    cut = json.loads(json.dumps(CUT))
    *parents, last = path.split(".")
    place = cut
    for name in parents:
        place = place[int(name) if name.isdigit() else name]
    place[last] = value
    with gzip.open(tmp_path / "cuts.jsonl.gz", "wt") as file:
        file.write(f"{json.dumps(CUT)}\n{json.dumps(cut)}\n")
    corpus = find(tmp_path)
    assert labels(corpus) == [("ann", "r")]
    assert len(corpus.problems) == 1
    assert words in corpus.problems[0]
    assert corpus.problems[0].startswith("cuts.jsonl.gz line 2: ")


def test_a_broken_archive_and_a_recording_that_is_too_short(tmp_path):
    soundfile.write(tmp_path / "a.wav", sound(0), RATE)
    path = tmp_path / "cuts.jsonl.gz"
    line = f"{json.dumps(CUT)}\n".encode()
    path.write_bytes(gzip.compress(line + sound(1).tobytes().hex().encode())[:-900])
    with pytest.raises(CorpusError, match=r"cuts.jsonl.gz cannot be read .*; write it again"):
        find(path)
    with pytest.raises(SourceError, match=r"a.wav ends at 1.00 s.* up to 2.00 s"):
        File(Clip(tmp_path / "a.wav", ((0.0, 2.0),)))
    with pytest.raises(SourceError, match="no channel 1"):
        File(Clip(tmp_path / "a.wav", ((0.0, 0.5),), (1,)))


# --- All of them.


@pytest.mark.slow
def test_templates_are_those_of_the_same_speech_in_folders(tmp_path):
    """Whatever the layout, and by whichever number of processes."""
    lhotse = pytest.importorskip("lhotse", reason="needs the extra all-tests")
    sounds = [synthetic(20.0, pitch, seed) for seed, pitch in enumerate((110.0, 120.0, 210.0))]
    rows = [("a", "ann", "1", "f"), ("b", "ann", "2", "f"), ("c", "bob", "1", "m")]
    write_parquet(tmp_path / "x.parquet", sounds, rows)
    supervisions, recordings = [], []
    for samples, (name, who, session, _) in zip(sounds, rows, strict=True):
        folder = tmp_path / "folders" / who / session
        folder.mkdir(parents=True)
        (folder / f"{name}.flac").write_bytes(flac(samples))
        both = np.concatenate([sound(3), samples])
        soundfile.write(tmp_path / f"{name}.flac", both, RATE)
        recordings.append(lhotse.Recording.from_file(tmp_path / f"{name}.flac"))
        supervisions.append(
            lhotse.SupervisionSegment(name, name, 1.0, 20.0, speaker=who, custom={"day": session})
        )
    lhotse.CutSet.from_manifests(
        recordings=lhotse.RecordingSet.from_recordings(recordings),
        supervisions=lhotse.SupervisionSet.from_segments(supervisions),
    ).to_file(tmp_path / "cuts.jsonl")
    corpora = [
        find(tmp_path / "folders"),
        find(tmp_path / "x.parquet", columns=BY_ID),
        find(tmp_path / "cuts.jsonl", columns=Columns(session="day")),
    ]
    first, *others = (
        enrol(corpus, features=["f0"], jobs=jobs).population
        for corpus, jobs in [(corpora[0], 1), (corpora[1], 1), (corpora[1], 2), (corpora[2], 2)]
    )
    for other in others:
        assert other.names == first.names == ("ann", "bob")
        assert np.array_equal(other.offsets, first.offsets)
        mine, theirs = (p.templates("f0", p.scoring(10.0)) for p in (first, other))
        assert np.array_equal(mine, theirs)
