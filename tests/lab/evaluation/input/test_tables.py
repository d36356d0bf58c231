"""Data frames and Parquet say the same as the text of the same columns."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from monitor.errors import StoreError, UsageError
from monitor.lab.evaluation import EvaluationSettings, evaluate, read_scores
from monitor.lab.evaluation.input.scores import scores_in_memory
from tests.corpus.test_hostile import forge

OWN = np.arange(24) % 4
SCORES = np.random.default_rng(0).normal(size=(24, 4)) + 2 * np.eye(4)[OWN]
NAMES, IDS = ["ann", "bob", "cid", "dan"], [1272, 1988, 251, 84]
SPOKEN, SPOKEN_IDS = [NAMES[own] for own in OWN], [IDS[own] for own in OWN]
TRIALS = [f"u{i}" for i in range(24)]
MATRIX = pd.DataFrame(SCORES, columns=NAMES)
NUMBERED = pd.DataFrame(SCORES, columns=IDS)
TABLE = MATRIX.assign(trial=TRIALS, target=SPOKEN)
LIST = pd.DataFrame(
    [
        (TRIALS[i], NAMES[j], SCORES[i, j], "target" if OWN[i] == j else "nontarget")
        for i in range(24)
        for j in range(4)
    ],
    columns=["trial", "speaker", "score", "target"],
)
FRAMES = {
    "names": (MATRIX, SPOKEN),
    "places": (MATRIX, OWN),
    "index": (MATRIX.set_axis(SPOKEN), None),
    "category": (MATRIX.set_axis(pd.CategoricalIndex(SPOKEN)), None),
    "bytes": (MATRIX.set_axis([name.encode() for name in SPOKEN]), None),
    "one text": (MATRIX.assign(who=SPOKEN), None),
    "table": (TABLE, None),
    "nullable": (TABLE.convert_dtypes(), None),
    "pyarrow": (TABLE.convert_dtypes(dtype_backend="pyarrow"), None),
    "arrow": (pa.table(TABLE), None),
    "list": (LIST, None),
    "list of categories": (LIST.astype({"speaker": "category", "target": "category"}), None),
    "list of booleans": (LIST.assign(target=LIST.target == "target"), None),
    "list and frame": (LIST.drop(columns="target"), TABLE[["trial", "target"]]),
    "arrow list": (pa.table(LIST), None),
    "ids": (NUMBERED, SPOKEN_IDS),
    "ids as text": (NUMBERED, list(map(str, SPOKEN_IDS))),
    "ids in the index": (NUMBERED.set_axis(SPOKEN_IDS), None),
    "ids that are text": (NUMBERED.rename(columns=str), SPOKEN_IDS),
    "ids that are floats": (NUMBERED.rename(columns=float), SPOKEN_IDS),
}


@pytest.mark.parametrize(("scores", "labels"), FRAMES.values(), ids=FRAMES)
def test_a_frame_gives_the_scores_of_each_speaker(scores, labels):
    matrix = scores_in_memory(scores, labels).matrix
    names = list(map(str, IDS)) if str(IDS[0]) in matrix.speakers else NAMES
    order = [names.index(name) for name in matrix.speakers]
    assert np.array_equal(np.asarray(matrix.scores, float), SCORES[:, order])
    assert [matrix.speakers[own] for own in matrix.target] == [names[own] for own in OWN]
    few = EvaluationSettings(replicates=0, only=("srd",))
    assert evaluate(scores, labels=labels, settings=few).tested == tuple(sorted(names))


@pytest.mark.parametrize(
    ("scores", "labels", "words"),
    [
        (MATRIX, None, "no speakers: give labels"),
        (pd.DataFrame(SCORES), None, "has no speakers"),
        (LIST.drop(columns="target"), None, "has no speakers"),
        (MATRIX.astype("Float64").mask(MATRIX > 3), SPOKEN, "trial .* is not finite"),
        (MATRIX.assign(who=SPOKEN, where="x"), None, "who and where are text"),
        (TABLE.assign(Age=30), None, "scores has a column Age, which is not a speaker"),
        (
            LIST.assign(speaker=LIST.speaker.where(LIST.trial != "u0", LIST.speaker.str.title())),
            None,
            "scores: speaker ann is also written Ann",
        ),
        (TABLE.astype({"bob": str}), None, "column bob contain text"),
        (TABLE.assign(target=[None, *SPOKEN[1:]]), None, "number 1 is"),
        (LIST.assign(target="x"), None, "'x' is neither target nor nontarget"),
        (LIST.iloc[:0], None, "has no row"),
        (NUMBERED.set_axis(list("1234"), axis=1), [1, 2] * 12, "give labels as text"),
        (
            pa.table({"trial": TRIALS, "ann": [{"a": 1}] * 24, "target": SPOKEN}),
            None,
            "ann are dict",
        ),
    ],
)
def test_a_frame_that_is_unclear_is_refused(scores, labels, words):
    with pytest.raises(UsageError, match=words):
        scores_in_memory(scores, labels)


def view(table: pa.Table, name: str, kind: pa.DataType) -> pa.Table:
    place, column = table.column_names.index(name), table[name].cast(pa.string())
    column = column if kind == pa.string_view() else column.cast(pa.binary())
    return table.set_column(place, name, column.cast(kind))


@pytest.mark.parametrize(
    "table",
    [
        pa.table(LIST), pa.table(TABLE), pa.Table.from_pandas(MATRIX.set_axis(SPOKEN)),
        view(pa.table(LIST), "speaker", pa.string_view()),
        view(pa.table(LIST), "speaker", pa.binary_view()),
        pa.Table.from_pandas(LIST.astype({"speaker": "category"})),
    ],
)  # fmt: skip
def test_parquet_is_read_as_a_frame(run_evaluate, tmp_path, table):
    path = tmp_path / "scores.parquet"
    pq.write_table(table, path)
    matrix = read_scores(path).matrix
    assert matrix.speakers == tuple(NAMES)
    assert np.array_equal(matrix.scores, SCORES)
    assert run_evaluate(path)["systems"][0]["speakers"] == 4


def test_labels_are_read_from_parquet(tmp_path):
    np.save(tmp_path / "scores.npy", SCORES)
    pq.write_table(pa.table({"speaker": SPOKEN}), tmp_path / "spoken.parquet")
    read = read_scores(tmp_path / "scores.npy", tmp_path / "spoken.parquet")
    assert read.matrix.speakers == tuple(NAMES)
    pq.write_table(pa.table(LIST.drop(columns="target")), tmp_path / "list.parquet")
    for name, frame in (("utt2spk", TABLE[["trial", "target"]]), ("key", LIST)):
        pq.write_table(pa.table(frame), tmp_path / f"{name}.parquet")
        read = read_scores(tmp_path / "list.parquet", tmp_path / f"{name}.parquet")
        assert np.array_equal(read.matrix.scores, SCORES)


@pytest.mark.parametrize(
    ("change", "error", "words"), [(lambda data: data[:500], StoreError, "damaged or cut short")]
)
def test_damaged_parquet_is_refused(tmp_path, change, error, words):
    path = tmp_path / "scores.parquet"
    pq.write_table(pa.table(LIST), path)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(error, match=words) as caught:
        read_scores(path)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("is_forged", [True, False], ids=["forged", "stated"])
def test_parquet_that_unpacks_to_far_more_is_refused(tmp_path, is_forged):
    path = tmp_path / "scores.parquet"
    long = pa.array([b"\0" * (140 << 20), b"x"])
    table = pa.table({"trial": long.cast(pa.string()), "speaker": ["a", "b"], "score": [1.0, 2.0]})
    pq.write_table(table, path, compression="zstd", use_dictionary=False, write_statistics=False)
    if is_forged:
        forge(path)
    with pytest.raises(UsageError, match="claims 140 MB in"):
        read_scores(path)


@pytest.fixture
def run_evaluate(capsys):
    """The command, as JSON."""
    import json

    from monitor.cli import main

    def run(path):
        with pytest.raises(SystemExit) as left:
            main(["evaluate", str(path), "--replicates", "0", "--json"])
        out, err = capsys.readouterr()
        assert not left.value.code, err
        return json.loads(out)

    return run
