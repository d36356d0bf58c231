"""Data sets that would cost memory or time without end: refused."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from monitor.corpus import Columns, find
from monitor.datasets import opening
from monitor.errors import CorpusError
from tests.corpus.test_data_sets import CUT, parquet
from tests.corpus.test_finding import make

MOST_MIB = 120
"""Of memory beyond that of the program, for a file of some kilobytes or many junk lines."""
_PROGRAM = """
import resource, sys
from monitor.corpus import Columns, find
from monitor.errors import MonitorError
from monitor.sources import File
import monitor.sources.file
if sys.argv[2:]:
    import pyarrow.parquet
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
most = size + (int(sys.argv[3]) << 20)
resource.setrlimit(resource.RLIMIT_AS, (most, most))
try:
    corpus = find(sys.argv[1], columns=Columns(sys.argv[2]) if sys.argv[2] else Columns())
    print(len(corpus), len(corpus.problems), corpus.problems[-1:])
    File(corpus.recordings[0].path)
except MonitorError as error:
    print(error)
"""


def read_with_little_memory(path: Path, column: str = "", most: int = MOST_MIB) -> str:
    if not sys.platform.startswith("linux"):
        pytest.skip("limits memory as Linux does")
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(path), column, str(most)],
        capture_output=True, text=True, timeout=100, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize(
    "name",
    ["metadata.csv", "metadata.jsonl", "cuts.jsonl", "cuts.jsonl.gz", "x.parquet", "manifest.csv",
     "utt2spk"],
)  # fmt: skip
@pytest.mark.parametrize("is_folder", [True, False], ids=["folder", "file"])
def test_a_pipe_is_refused_at_once(tmp_path, name, is_folder):
    pytest.importorskip("pyarrow")
    make(tmp_path, "ann/a.wav")
    os.mkfifo(tmp_path / name)
    columns = Columns("who") if "parquet" in name else Columns()
    with pytest.raises(CorpusError) as refused:
        find(tmp_path if is_folder else tmp_path / name, columns=columns)
    assert "pipe" in str(refused.value)


def test_recordings_that_are_pipes_are_left_out(tmp_path):
    os.mkfifo(tmp_path / "a.wav")
    for name, text in {
        "cuts.jsonl": json.dumps(CUT),
        "manifest.csv": "path,speaker\na.wav,ann\n",
    }.items():
        (tmp_path / name).write_text(text)
        with pytest.raises(CorpusError, match=r"a\S*.wav is a folder, a pipe or a device"):
            find(tmp_path / name)


def test_a_device_is_refused(tmp_path):
    (tmp_path / "cuts.jsonl").symlink_to("/dev/zero")
    with pytest.raises(CorpusError, match=r"cuts.jsonl is a pipe or a device"):
        find(tmp_path / "cuts.jsonl")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "words"),
    [(b" " * (1 << 20), "has a line of more than 8 MB"), (b" " * 99 + b"\n", "unpacks to more")],
    ids=["line", "lines"],
)
def test_an_archive_that_unpacks_to_far_more_is_refused(tmp_path, line, words):
    path = tmp_path / "cuts.jsonl.gz"
    with gzip.open(path, "wb", compresslevel=9) as file:
        file.write(f"{json.dumps(CUT)}\n".encode())
        for _ in range(200):
            file.write(line * ((1 << 20) // len(line)))
    assert words in read_with_little_memory(path)


JUNK = {
    "metadata.jsonl": (b'{"file_name": "a.wav", "who": "ann"}\n', b"{}\n"),
    "metadata.csv": (b"file_name,who\na.wav,ann\n", b"x\n"),
    "manifest.csv": (b"path,speaker\na.wav,ann\n", b"x\n"),
    "cuts.jsonl": (f"{json.dumps(CUT)}\n".encode(), b"[]\n"),
    "wav.scp": (b"u a.wav\n", b"x\n"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", JUNK)
def test_junk_lines_cost_no_memory(tmp_path, name):
    """The first thousand are named, the others counted."""
    make(tmp_path, "a.wav")
    (tmp_path / "utt2spk").write_text("u ann\n")
    first, line = JUNK[name]
    count = 500_000
    (tmp_path / name).write_bytes(first + line * count)
    said = read_with_little_memory(
        tmp_path if name == "wav.scp" else tmp_path / name, "who" if "meta" in name else "", 60
    )
    assert said.startswith(f"1 1001 ('and {count - 1000:,} more problems',)")


def test_a_line_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(opening, "LONGEST_LINE", 1000)
    make(tmp_path, "a.wav")
    texts = {
        "manifest.csv": "path,speaker\n", "metadata.csv": "file_name,who\n",
        "metadata.jsonl": '{"file_name": "a.wav", "who": "ann"}\n',
    }  # fmt: skip
    for name, text in texts.items():
        (tmp_path / name).write_text(text + "x" * 2000)
        with pytest.raises(CorpusError, match="has a line of more than"):
            find(tmp_path / name, columns=Columns("who") if "meta" in name else Columns())


# --- Parquet with sizes that are not true.


def varint(number: int) -> bytes:
    """As Thrift writes integers."""
    number, made = number << 1, b""
    while number > 127:
        made, number = made + bytes([number & 127 | 128]), number >> 7
    return made + bytes([number])


def forge(path: Path, *, say: int = 1000) -> None:
    """Write another size into the footer, wherever it states one of more than a megabyte."""
    parquet_file = pytest.importorskip("pyarrow.parquet").ParquetFile(path)
    group = parquet_file.metadata.row_group(0)
    columns = map(group.column, range(group.num_columns))
    sizes = {group.total_byte_size, *(column.total_uncompressed_size for column in columns)}
    data = path.read_bytes()
    begin = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    body, footer = data[:begin], data[begin:-8]
    for size in sizes:
        if size > 1 << 20:
            true, false = varint(size), varint(say)
            false = false[:-1] + bytes([false[-1] | 128]) + b"\x80" * (len(true) - len(false) - 1)
            footer = footer.replace(true, false + b"\0")
    path.write_bytes(body + footer + len(footer).to_bytes(4, "little") + b"PAR1")


@pytest.mark.slow
@pytest.mark.parametrize("column", ["audio", "text"])
@pytest.mark.parametrize("is_forged", [True, False], ids=["forged", "stated"])
def test_parquet_that_unpacks_to_far_more_is_refused(tmp_path, column, is_forged):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    long = pa.array([b"\0" * (100 << 20), b"x"])
    short = pa.array([b"x", b"x"])
    audio = pa.StructArray.from_arrays([long if column == "audio" else short], ["bytes"])
    text = (long if column == "text" else short).cast(pa.string())
    table = pa.table({"audio": audio, "who": ["ann", "bob"], "text": text})
    path = tmp_path / "x.parquet"
    pq.write_table(table, path, compression="zstd", use_dictionary=False, write_statistics=False)
    if is_forged:
        forge(path)
    assert path.stat().st_size < 100_000
    said = read_with_little_memory(path, "who")
    assert "claims 2 rows and 100 MB" in said


@pytest.mark.slow
def test_many_rows_that_share_a_long_cell_cost_one(tmp_path):
    """A dictionary has it once; as plain rows these would be gigabytes."""
    long, count = "x" * 2_000_000, 2000
    pa = pytest.importorskip("pyarrow")
    audio = pa.DictionaryArray.from_arrays([0] * count, [long.encode()])
    text = pa.DictionaryArray.from_arrays([0] * count, [long])
    path = tmp_path / "x.parquet"
    structs = pa.StructArray.from_arrays([audio], ["bytes"])
    parquet(path, audio=structs, who=["ann"] * count, text=text, pad=[os.urandom(20)] * count,
            noise=[os.urandom(20).hex() for _ in range(count)])  # fmt: skip
    assert read_with_little_memory(path, "who").startswith(f"{count} 0")
