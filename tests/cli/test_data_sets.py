"""Every command that takes a corpus takes a data set as it lies there."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

from monitor import calibrate, enrol
from monitor.errors import CorpusError
from tests.sounds import RATE, synthetic

COLUMNS = ("--columns", "speaker=who,session=day")
SECONDS = 16.0
F0 = ("--features", "f0", "--jobs", "1")


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """Ten people on two days, in Parquet; and two by two in recordings, in lhotse's cuts."""
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    folder: Path = tmp_path_factory.mktemp("sets")
    talks = {(i, day): synthetic(SECONDS, 90.0 + 14 * i, 2 * i + day) for i in range(10)
             for day in (0, 1)}  # fmt: skip
    table: dict[str, list[object]] = {"audio": [], "who": [], "day": [], "gender": []}
    for (i, day), samples in talks.items():
        file = io.BytesIO()
        soundfile.write(file, samples, RATE, format="FLAC")
        row = {"bytes": file.getvalue(), "path": None}, f"p{i}", day, "fm"[i % 2]
        for cells, value in zip(table.values(), row, strict=True):
            cells.append(value)
    parquet.write_table(pa.table(table), folder / "x.parquet")
    cuts = []
    for i in range(0, 10, 2):
        for day in (0, 1):
            both = np.concatenate([talks[i, day], talks[i + 1, day]])
            soundfile.write(folder / f"{i}-{day}.flac", both, RATE)
            sources = [{"type": "file", "channels": [0], "source": f"{i}-{day}.flac"}]
            cuts += [
                {
                    "id": f"{i}-{day}", "type": "MonoCut", "start": start, "duration": SECONDS,
                    "channel": 0, "recording": {"id": f"{i}-{day}", "sources": sources,
                                                "sampling_rate": RATE, "num_samples": both.size},
                    "supervisions": [
                        {"recording_id": f"{i}-{day}", "start": 0.0, "duration": SECONDS,
                         "speaker": f"p{who}", "gender": "fm"[who % 2]},
                    ],
                }
                for start, who in ((0.0, i), (SECONDS, i + 1))
            ]  # fmt: skip
    (folder / "cuts.jsonl").write_text("".join(f"{json.dumps(cut)}\n" for cut in cuts))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "columns", "document"),
    [("x.parquet", COLUMNS, ("--card",)), ("cuts.jsonl", (), ("-o", "a.html"))],
)
def test_from_templates_to_an_attack(run, place, tmp_path, monkeypatch, name, columns, document):
    monkeypatch.chdir(tmp_path)
    corpus, us = (place / name, *columns, *F0), tmp_path / "us.npz"
    done = run("enrol", *corpus, "-o", us, "--seconds", "10")
    assert done.code == 0, done.err
    assert "10 speakers enrolled with 10 s" in done.err
    following = next(line for line in done.err.splitlines() if line.startswith("next: "))
    assert " ".join(map(str, (place / name, *columns))) in following
    lengths = ("--lengths", "3", "--template-lengths", "10")
    done = run("calibrate", *corpus, "-o", us, *lengths, {"replicates": 20, "alarms": False})
    assert done.code == 0, done.err
    scores = tmp_path / "s.npz"
    assert run("score", *corpus, "-o", scores, *lengths).code == 0
    assert run("evaluate", scores, "--group-by", "gender").code == 0
    done = run("audit", *corpus, *document, "--lengths", "3", "--template", "10",
               {"replicates": 20})  # fmt: skip
    assert done.code == 0, done.err
    done = run("attack", *corpus, "-o", tmp_path / "out", "--attackers", "ignorant", "--seconds",
               "3", "--template", "6", "--segments", "1", "--trials", "1")  # fmt: skip
    assert done.code == 0, done.err
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert {row["speakers"] for row in results["rows"]} == {10}
    assert not [*tmp_path.rglob("*.wav"), *tmp_path.rglob("*.flac")]


@pytest.mark.parametrize("columns", [(), COLUMNS[:2]], ids=["as-stated", "named"])
@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("metadata.csv", "file_name;who\ntrain/a.wav;ann\n", "write the header file_name"),
        ("README.md", "", "path,speaker,session"),
    ],
    ids=["table", "splits"],
)
def test_no_command_takes_splits_for_speakers(run, people, tmp_path, columns, name, text, words):
    """One reader serves all of them, and the Python interface."""
    root = tmp_path / "corpus"
    for split in ("train", "test"):
        (root / split).mkdir(parents=True)
        (root / split / f"{split[1:]}.wav").write_bytes(b"")
    (root / name).write_text(text)
    if name == "README.md" and columns:
        words = "has no columns to name"
    for command, output, *options in (
        ("enrol", "a.npz"), ("calibrate", "a.npz"), ("score", "b.npz", "--lengths", "3"),
        ("audit", "c.html"), ("attack", "d", "--attackers", "ignorant"),
    ):  # fmt: skip
        done = run(command, root, *columns, "-o", tmp_path / output, *options)
        assert done.code == 1, command
        assert words in done.err, command
        assert not (tmp_path / output).exists()
    done = run("attack", people, "--background", root, *columns, "-o", tmp_path / "e",
               "--attackers", "ignorant")  # fmt: skip
    assert done.code == 1
    for read in (enrol, calibrate):
        with pytest.raises(CorpusError):
            read(root)
