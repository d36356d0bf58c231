"""One reader of rows: every kind of text refuses a line by its number, and none reads upwards."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

from monitor.errors import UsageError
from monitor.lab.evaluation.input.embeddings import read_vectors
from monitor.lab.evaluation.input.files import read_map
from monitor.lab.evaluation.input.groups import read_attribute, read_conditions
from monitor.lab.evaluation.input.scores import read_labels, read_scores
from monitor.lab.evaluation.voiceprivacy import read_trials
from tests.test_layers import MODULES, imported

KINDS: dict[str, tuple[Callable[[Path], object], str]] = {
    "names": (read_labels, "ann\nbob\n"),
    "utt2spk": (read_labels, "u1 ann\nu2 bob\n"),
    "trial list": (read_labels, "ann u1 target\nbob u1 nontarget\n"),
    "spk2gender": (read_attribute, "ann f\nbob m\n"),
    "groups": (read_attribute, "speaker,sex\nann,f\nbob,m\n"),
    "conditions": (read_conditions, "trial\tline\tseconds\nu1\tmobile\t3\nu2\tfixed\t4\n"),
    "embeddings": (read_vectors, "speaker,e0,e1\nann,0,1\nbob,1,0\n"),
    "map": (read_map, "u1 0\nu2 1\n"),
    "kit's trials": (read_trials, "ann u1 target\nbob u1 nontarget\n"),
    "scores": (read_scores, "ann u1 0.5\nbob u1 0.4\n"),
    "table": (read_scores, "trial,ann,bob\nu1,0.5,0.4\nu2,0.1,0.2\n"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_row_of_another_width_is_refused_with_its_line(tmp_path, kind, end):
    read, text = KINDS[kind]
    lines = text.splitlines()
    mark = next((mark for mark in "\t," if mark in lines[0]), " ")
    ragged = ["", *lines[:-1], "", lines[-1] + f"{mark}more"]
    (tmp_path / "f").write_text(end.join(ragged), newline="")
    with pytest.raises(UsageError, match=f"^f line {len(ragged)}: .*(column| is not )"):
        read(tmp_path / "f")


@pytest.mark.parametrize("kind", KINDS)
def test_a_comment_in_the_place_of_a_header_is_refused(tmp_path, kind):
    read, text = KINDS[kind]
    (tmp_path / "f").write_text(f"\n# made by us\n{text}")
    with pytest.raises(UsageError, match=r"^f line 2: is a comment"):
        read(tmp_path / "f")


def test_names_of_a_map_may_hold_commas(tmp_path):
    (tmp_path / "f").write_text("u,1 ann\nu,2\tbob\n")
    assert read_map(tmp_path / "f") == {"u,1": "ann", "u,2": "bob"}


def test_embeddings_of_a_speaker_that_is_written_in_two_ways(tmp_path):
    (tmp_path / "f").write_text("speaker,e0\n7,1\n7.0,2\n")
    with pytest.raises(UsageError, match=r"speaker 7\.0 is also written 7"):
        read_vectors(tmp_path / "f")
    (tmp_path / "f").write_text("speaker,e0\n7,1\n8,x\n")
    with pytest.raises(UsageError, match=r"^f line 3: the value 'x' is not a number"):
        read_vectors(tmp_path / "f")


FLOORS = [
    "files", "kaldi", "pairs", "lists", "groups", "tables", "enrolments", "matching", "score_file",
    "scores", "embeddings",
]  # fmt: skip


def test_readers_import_only_lower_ones():
    room = "monitor.lab.evaluation.input."
    inside = {name for name in MODULES if name.startswith(room)}
    assert inside == {room + name for name in FLOORS}
    for name in ("comparisons", "memory"):
        assert not imports(f"monitor.lab.evaluation.{name}") & inside
    for floor, name in enumerate(FLOORS):
        assert imports(room + name) & inside <= {room + lower for lower in FLOORS[:floor]}, name


@pytest.mark.parametrize("stated", [None, "trials"])
def test_a_list_is_read_with_few_returns_between_files(tmp_path, monkeypatch, stated):
    monkeypatch.chdir(tmp_path)
    lines = [
        f"{who} u{trial} {0.1 * (who == spoken)} {'' if who == spoken else 'non'}target\n"
        for trial, spoken in enumerate("abcabc")
        for who in "abc"
    ]
    Path("scores").write_text("".join(lines))
    Path("trials").write_text(re.sub(r" 0\.\d", "", "".join(lines)))
    walk = files_in_order(lambda: read_scores("scores", stated))
    assert len(walk) - len(set(walk)) <= 10


def files_in_order(run):
    """Files of the laboratory in the order in which their functions are first called."""
    calls: dict[tuple[str, str], None] = {}

    def note(frame, event, _):
        code = frame.f_code
        if event == "call" and "/monitor/lab/" in code.co_filename.replace(os.sep, "/"):
            calls[code.co_filename, code.co_qualname.split(".<locals>")[0]] = None

    before = sys.getprofile()
    run()  # first imports
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(before)
    return [file for file, _ in groupby(file for file, _ in calls)]


def imports(module):
    return imported(ast.parse(MODULES[module].read_text()))


_LITTLE_MEMORY = """
import resource, sys
from monitor.cli import main
from monitor.lab.evaluation import evaluating
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (16 << 20), resource.RLIM_INFINITY))
sys.exit(main(["evaluate", *sys.argv[1:]]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("form", ["list", "records", "matrix with a trial list"])
def test_a_list_beyond_memory_is_refused_with_its_size(tmp_path, form):
    if not sys.platform.startswith("linux"):
        pytest.skip("limits memory as Linux does")
    trials, speakers = 4000, 100
    scores, labels = tmp_path / "s", tmp_path / "l"
    cells = [(j, i, 0.1 * ((i + j) % 7)) for i in range(trials) for j in range(speakers)]
    labels.write_text("".join(f"t{i} s{i % speakers}\n" for i in range(trials)))
    if form == "list":
        scores.write_text("".join(f"s{j} t{i} {x:.1f}\n" for j, i, x in cells))
    elif form == "records":
        kinds = [("speaker", "<i4"), ("trial", "<i4"), ("score", "<f4")]
        np.save(tmp_path / "s.npy", np.array(cells, kinds))
        scores = (tmp_path / "s.npy").rename(scores)
        labels.write_text("".join(f"{i % speakers}\n" for i in range(trials)))
    else:
        names = [f"s{j}" for j in range(speakers)]
        rows = (f"t{i},{','.join(['0.1'] * speakers)}\n" for i in range(trials))
        scores.write_text(",".join(["trial", *names]) + "\n" + "".join(rows))
        key = (f"s{j} t{i} {'non' * (i % 9 != j)}target\n" for j, i, _ in cells[:1000])
        labels.write_text("".join(key))
    done = subprocess.run(
        [sys.executable, "-c", _LITTLE_MEMORY, str(scores), "--labels", str(labels)],
        capture_output=True, text=True, timeout=100, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 2, done.stderr[-2000:]
    (line,) = done.stderr.splitlines()[-1:]
    assert re.search(r"s has 400,000 comparisons: they need 18 MB of memory, and \d+ MB is", line)
