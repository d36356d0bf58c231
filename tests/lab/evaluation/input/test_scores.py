"""Every format of scores gives the same matrix, and a score file holds all that is known."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from monitor.errors import StoreError, UsageError
from monitor.lab.evaluation import memory
from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.lab.evaluation.evaluating import evaluate
from monitor.lab.evaluation.family import EvaluationSettings
from monitor.lab.evaluation.input import files
from monitor.lab.evaluation.input.groups import Attribute
from monitor.lab.evaluation.input.score_file import ScoreCell, ScoreFile, write_score_file
from monitor.lab.evaluation.input.scores import read_scores

SPEAKERS = ("ann", "bob", "cid")
TRIALS = ("a-1", "a-2", "b-1", "c-1")
TARGET = [0, 0, 1, 2]
SCORES = np.array([[0.9, 0.125, -0.25], [0.5, 0.75, 0.0], [0.1, 0.8, 0.3], [1e-3, -2.5, 0.4]])


@pytest.fixture
def file(tmp_path):
    """Writes a file and gives its path."""

    def write(name, content):
        path = tmp_path / name
        if isinstance(content, str):
            path.write_text(content, encoding="utf-8")
        elif isinstance(content, bytes):
            path.write_bytes(content)
        elif isinstance(content, dict):
            np.savez(path, **content)
        else:
            np.save(path, content, allow_pickle=True)
        return path

    return write


def table(separator=",", corner="trial", label=None):
    """A table with names in its first column."""
    lines = [[corner, *([label] if label else []), *SPEAKERS]]
    for trial, own, row in zip(TRIALS, TARGET, SCORES, strict=True):
        lines.append([trial, *([SPEAKERS[own]] if label else []), *map(repr, row.tolist())])
    return "".join(separator.join(line) + "\n" for line in lines)


def pairs(form, header=""):
    """A list; the form has t, s, x (score) and w (word) in it."""
    lines = []
    for i in range(len(TRIALS)):
        for j in range(len(SPEAKERS)):
            word = "target" if TARGET[i] == j else "nontarget"
            x = repr(float(SCORES[i, j]))
            lines.append(form.format(t=TRIALS[i], s=SPEAKERS[j], x=x, w=word) + "\n")
    return header + "".join(lines)


UTT2SPK = "".join(f"{t} {SPEAKERS[j]}\n" for t, j in zip(TRIALS, TARGET, strict=True))
NAMES = "".join(f"{SPEAKERS[j]}\n" for j in TARGET)
KEY = pairs("{s} {t} {w}")

LABELS = {
    "utt2spk": UTT2SPK,
    "shuffled": "".join(sorted(UTT2SPK.splitlines(keepends=True), reverse=True)),
    "csv": "trial,speaker\n" + UTT2SPK.replace(" ", ","),
    "turned": "speaker trial\n"
    + "".join(f"{SPEAKERS[j]} {t}\n" for t, j in zip(TRIALS, TARGET, strict=True)),
    "key": KEY,
    "key.csv": pairs("{t},{s},{w}", "trial,speaker,target\n"),
    "01": pairs("{s} {t} {w}").replace("nontarget", "0").replace("target", "1"),
    "targets": "".join(line for line in KEY.splitlines(keepends=True) if " target" in line),
}

FORMS = {
    "kaldi": pairs("{s} {t} {x}"),
    "tabs": pairs("{s}\t{t}\t{x}"),
    "crlf": pairs("{s} {t} {x}").replace("\n", "\r\n"),
    "blank lines": "\n" + pairs("{s}  {t}   {x} ").replace("\n", "\n\n"),
    "bom": "\ufeff" + pairs("{s} {t} {x}"),
    "list.csv": pairs("{t},{s},{x}", "trial,speaker,score\n"),
    "listed.csv": pairs("{x}, {s}, {t}", "score,model,utterance\n"),
    "quoted.csv": pairs('"{t}","{s}",{x}', "trial,speaker,score\n"),
    "vpc": pairs("{s} {t} {x}", "enroll_id trial_id score\n"),
    "more columns": pairs("{s}\t{t}\ta\t{x}", "modelid\tsegment\tside\tLLR\n"),
    "wide.csv": table(),
    "wide.tsv": table("\t"),
    "wide.txt": table(" "),
    "corner.csv": table(corner=""),
}


def same(read, names=SPEAKERS):
    assert read.matrix.speakers == names
    assert read.matrix.scores.tolist() == SCORES.tolist()
    assert read.matrix.target.tolist() == TARGET


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("labels", LABELS)
def test_texts_with_labels_by_trial(file, form, labels):
    read = read_scores(file("scores." + form, FORMS[form]), file("labels", LABELS[labels]))
    same(read)
    said = ("labels lists only targets: all other scored pairs are nontarget",)
    assert read.notes == (said if labels == "targets" else ())


@pytest.mark.parametrize("form", ["wide.csv", "kaldi", "list.csv"])
@pytest.mark.parametrize("header", ["", "speaker\n"])
def test_texts_with_names_in_order(file, form, header):
    same(read_scores(file("scores." + form, FORMS[form]), file("labels", header + NAMES)))


@pytest.mark.parametrize(
    "content",
    [
        table(label="target"),
        pairs("{s} {t} {x} {w}"),
        pairs("{t},{s},{x},{w}", "trial,speaker,score,target\n"),
    ],
)
def test_texts_that_say_who_spoke(file, content):
    same(read_scores(file("scores.csv", content)))


def test_speakers_that_are_numbers(file, tmp_path):
    names = {"ann": "84", "bob": "174", "cid": "1272"}

    def renamed(text):
        for name, number in names.items():
            text = text.replace(name, number)
        return text

    for form in ("kaldi", "wide.csv", "list.csv"):
        read = read_scores(file(form, renamed(FORMS[form])), file("k", renamed(KEY)))
        same(read, ("84", "174", "1272"))
    np.savetxt(tmp_path / "s.txt", SCORES)  # numbers alone
    labels = file("labels.txt", "".join(f"{j}\n" for j in TARGET))
    same(read_scores(tmp_path / "s.txt", labels), ("0", "1", "2"))


@pytest.mark.parametrize("kind", ["<f8", "<f4", ">f4", "<f2"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_are_mapped(file, kind, order):
    path = file("s.npy", np.asarray(SCORES, kind, order=order))
    read = read_scores(path, file("l.npy", np.array(TARGET, np.uint8)))
    assert isinstance(read.matrix.scores, np.memmap)
    assert read.matrix.name == "s"
    np.testing.assert_allclose(read.matrix.scores, SCORES, atol=2e-3)


def test_arrays_with_names_as_labels(file):
    path = file("s.npy", SCORES)
    for labels in (file("l", NAMES), file("l.npy", np.array(NAMES.split())), file("u", UTT2SPK)):
        read = read_scores(path, labels)
        same(read)
        assert read.notes[-1] == "columns have no names and are taken as ann to cid, in this order"
    assert read.notes[0] == "rows have no names and get labels in the order of u"


@pytest.mark.parametrize("key", ["target", "labels"])
def test_an_archive_brings_everything(file, key):
    same(read_scores(file("s.npz", {"scores": SCORES, key: TARGET, "speakers": SPEAKERS})))
    names = np.array(NAMES.split())
    same(read_scores(file("s.npz", {"scores": SCORES, key: names, "speakers": SPEAKERS})))
    bare = file("bare.npz", {"scores": SCORES})
    same(read_scores(bare, file("t.npy", np.array(TARGET))), ("0", "1", "2"))
    other = file("s.npz", {"scores": SCORES, key: [2, 2, 2, 2], "speakers": SPEAKERS})
    same(read_scores(other, file("u", UTT2SPK)))  # labels beside it win


RECORDS = [("trial", "<i4"), ("speaker", "<i4"), ("score", "<f8")]


@pytest.mark.parametrize(
    "kinds", [RECORDS, [("llr", ">f8"), ("MODEL", "u1"), ("side", "S3"), ("test", "<i8")]]
)
@pytest.mark.parametrize("order", [range(12), [7, 3, 11, 0, 4, 8, 1, 9, 2, 10, 6, 5]])
def test_a_list_of_records(file, kinds, order):
    """Trials are 0, 1 ..., speakers too: in any order, with fields of any kind and name."""
    listed = np.zeros(12, kinds)
    trial, speaker = np.indices(SCORES.shape).reshape(2, -1)[:, list(order)]
    for name in listed.dtype.names:
        if name in ("trial", "test"):
            listed[name] = trial
        elif name in ("speaker", "MODEL"):
            listed[name] = speaker
        elif name != "side":
            listed[name] = SCORES[trial, speaker]
    path = file("s.npy", listed)
    for labels in (TARGET, [*TARGET, 1]):  # of a trial that was compared with nobody
        read = read_scores(path, file("l.npy", np.array(labels)))
        same(read, ("0", "1", "2"))
        assert read.matrix.trial_names == ("0", "1", "2", "3")
    same(read_scores(path, file("l", "0\n0\n1\n2\n")), ("0", "1", "2"))
    same(read_scores(path, file("u", "2 1\n3 2\n0 0\n1 0\n")), ("0", "1", "2"))
    own = np.zeros(12, [*listed.dtype.descr, ("target", "?")])
    for name in listed.dtype.names:
        own[name] = listed[name]
    own["target"] = np.array(TARGET)[trial] == speaker
    same(read_scores(file("own.npy", own)), ("0", "1", "2"))


def test_records_with_gaps_in_their_numbers(file):
    rows = [(9, 4, 0.5), (9, 2, 0.25), (3, 2, 0.75), (3, 4, 0.0)]
    labels = file("l.npy", np.array([0, 0, 0, 2, 0, 0, 0, 0, 0, 4]))
    matrix = read_scores(file("s.npy", np.array(rows, RECORDS)), labels).matrix
    assert (matrix.speakers, matrix.trial_names) == (("2", "4"), ("3", "9"))
    assert (matrix.scores.tolist(), matrix.target.tolist()) == ([[0.75, 0.0], [0.25, 0.5]], [0, 1])


def any_list(draw):
    """Scores by pair, in any order, a key with others too, and owners of the enrolments."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    trials, models = draw(st.integers(2, 9)), draw(st.integers(2, 7))
    owner = generator.integers(0, draw(st.integers(2, 4)), models)
    said = generator.integers(0, 5, trials)
    pairs = [(i, j) for i in range(trials) for j in range(models)]
    kept = [pair for pair in pairs if generator.random() < draw(st.sampled_from([0.6, 1.0]))]
    scores = {kept[i]: float(generator.normal()) for i in generator.permutation(len(kept))}
    listed = [pairs[i] for i in generator.permutation(len(pairs)) if generator.random() < 0.8]
    if draw(st.sampled_from([False, False, True])):  # targets alone
        listed = [(i, j) for i, j in listed if owner[j] == said[i]]
    return scores, [*listed, *listed[:2]], owner.tolist(), said.tolist()


TARGETS_ALONE = [(0, 1), (1, 0), (0, 1), (1, 0)]


@given(st.composite(any_list)(), st.booleans(), st.sampled_from([1, 4, 1 << 20]))
@example(({(0, 1): 0.5, (0, 0): 0.25}, TARGETS_ALONE, [1, 2], [2, 1]), False, 1)
@example(({(0, 1): 0.5, (0, 0): 0.25}, TARGETS_ALONE, [1, 2], [2, 1]), True, 1)
def test_lists_are_read_in_parts_of_any_size(tmp_path_factory, drawn, merged, part):
    """Against a dictionary of what was written; columns are mapped where they are taken apart.

    A key of targets alone says who spoke, so all pairs of its trials count.
    """
    scores, listed, owner, said = drawn
    folder = tmp_path_factory.mktemp("parts")
    text = "".join(f"m{j} t{i} {x!r}\n" for (i, j), x in scores.items())
    (folder / "s").write_text("model trial score\n" + text)
    (folder / "k").write_text(
        "model trial target\n"
        + "".join(f"m{j} t{i} {'target' if owner[j] == said[i] else 'imp'}\n" for i, j in listed)
    )
    (folder / "m").write_text("".join(f"m{j} o{each}\n" for j, each in enumerate(owner)))
    found: dict[tuple[str, str], list[float]] = {}
    mated: dict[tuple[str, str], bool] = {}
    targets_alone = all(owner[j] == said[i] for i, j in listed)
    for (i, j), score in scores.items():
        if (i, j) in listed or targets_alone:
            pair = f"t{i}", f"o{owner[j]}" if merged else f"m{j}"
            found.setdefault(pair, []).append(score)
            mated[pair] = (i, j) in listed and owner[j] == said[i]
    expected = {pair: sum(several) / len(several) for pair, several in found.items()}
    tried = [i for i, _ in set(listed)]
    unclear = merged or len(set(tried)) < len(tried) or not {i for i, _ in scores} <= set(tried)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "_MOST", 1 << 28 if part > 4 else 0)
        patch.setattr(files, "_CHUNK", 20)
        whose = folder / "m" if merged else None
        try:
            every = read_scores(folder / "s", folder / "k", enrolment_labels=whose).comparisons
        except UsageError:
            assert len(set(mated.values())) < 2 or (targets_alone and unclear)
            return
        made = every.listed()
        rows = zip(made.trial, made.speaker, made.scores, made.mated, strict=True)
        got = {(made.trials[i], made.speakers[j]): (x, own) for i, j, x, own in rows}
    assert got.keys() == expected.keys()
    for pair, (score, own) in got.items():
        assert score == pytest.approx(expected[pair], abs=1e-15)
        assert own == mated[pair]


def test_trials_of_impostors_are_dropped_on_demand(file):
    # VoicePrivacy's lists hold trials of speakers who are not enrolled
    path = file("s", FORMS["kaldi"].replace("cid", "dot"))
    key = file("k", KEY.replace("cid c-1 target", "cid c-1 nontarget").replace("cid", "dot"))
    with pytest.raises(UsageError, match=r"1 of 4 trials of s have no mated .*first: trial c-1"):
        read_scores(path, key, unmated="refuse")
    read = read_scores(path, key, unmated="drop")
    assert read.matrix.target.tolist() == [0, 0, 1]
    assert read.matrix.scores.tolist() == SCORES[:3].tolist()
    assert "1 of 4 trials has no mated score" in read.notes[0]
    assert "dropped" in read.notes[0]
    assert "1 of 3 speakers has no trial" in read.notes[1]


def test_evaluate_takes_a_file_and_an_array_in_memory(file):
    few, target = EvaluationSettings(replicates=0), np.array(TARGET)
    expected = evaluate(ScoreMatrix(SCORES, target), settings=few)
    of_npz = file("s.npz", {"scores": SCORES, "labels": target})
    of_npy, labels = file("s.npy", SCORES), file("labels.npy", target)
    for made in (
        evaluate(SCORES, settings=few, labels=TARGET),
        evaluate(SCORES.tolist(), settings=few, labels=target),
        evaluate(of_npz, settings=few),
        evaluate(str(of_npy), settings=few, labels=str(labels)),
        evaluate(read_scores(of_npz), settings=few),
    ):
        for key, figure in expected.figures.items():
            assert made[key].value == figure.value, key
    with pytest.raises(UsageError, match="give labels="):
        evaluate(SCORES, settings=few)


@pytest.mark.parametrize("separator", [",", "\t"])
def test_names_with_commas(file, separator):
    scores = 'trial|"Lee, Ann"|"O""Hara; Bob"\n"u,1"|0.9|0.1\nu2|0.2|0.5\n'
    labels = '"u,1"|"Lee, Ann"\nu2|"O""Hara; Bob"\n'
    paths = (file(n, text.replace("|", separator)) for n, text in (("s", scores), ("l", labels)))
    found = read_scores(*paths).matrix
    assert found.speakers == ("Lee, Ann", 'O"Hara; Bob')
    assert found.mated.tolist() == [0.9, 0.5]


def cell(session: str, seconds: float) -> ScoreCell:
    generator = np.random.default_rng(round(seconds))
    target, rows = np.array([0, 0, 1, 2]), ("ann 1", "ann 2", "bob 1", "cid 1")
    made = {n: ScoreMatrix(generator.normal(size=(4, 3)), target, SPEAKERS, n, rows)
            for n in ("f0", "voice")}  # fmt: skip
    return ScoreCell(session, seconds, 30.0, made, ("1", "2", "1", "1"), np.arange(4.0))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "scores.npz"
    groups = Attribute("table", "gender", {"ann": "f", "bob": "m"})
    write_score_file(path, [cell("cross", 10.0), cell("same", 0.3)], groups)
    return path


def test_what_was_written_is_read(path):
    assert path.stat().st_mode & 0o777 == 0o600
    file: Any = ScoreFile.from_file(path)
    assert [entry.words for entry in file.entries] == [
        ("f0", "cross", "T=10", "D=30"), ("voice", "cross", "T=10", "D=30"),
        ("f0", "same", "T=0.3", "D=30"), ("voice", "same", "T=0.3", "D=30"),
    ]  # fmt: skip
    assert (file.groups.name, file.groups.of["bob"]) == ("gender", "m")
    read = read_scores(path, choose=["voice", "T=10.0"], name="mine")
    wanted = cell("cross", 10.0).matrices["voice"]
    assert np.array_equal(read.matrix.scores, wanted.scores)
    assert read.matrix.target.tolist() == wanted.target.tolist()
    assert (read.matrix.speakers, read.matrix.name) == (SPEAKERS, "mine")
    assert read.matrix.trial_names == wanted.trial_names
    assert read.notes == ()
    assert "parts of one session" in read_scores(path, choose=["voice", "same"]).notes[0]
    # words of one sort are alternatives
    for words, count in (("", 4), ("f0", 2), ("f0 voice T=10", 2), ("same cross", 4)):
        assert len(file.choose(words.split())) == count
    with pytest.raises(UsageError, match="includes the speakers"):
        read_scores(path, path, choose=["f0", "same"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("phones",), "has no scores of phones; it has f0 voice; cross same; T=10 T=0.3; D=30"),
        (("T=ten",), "invalid 'T=ten': give T and D in seconds, such as T=10"),
        (("f0",), "has 2 matrices: choose one of f0 voice; cross same"),
    ],
)
def test_a_choice_that_is_none_is_said(path, words, said):
    with pytest.raises(UsageError, match=said.replace("?", r"\?")):
        read_scores(path, choose=words)


SAME = {"session": "same", "test_seconds": 1, "template_seconds": 1}


@pytest.mark.parametrize(
    "header",
    [
        {"cells": 3},
        {"cells": [{"session": "night"}]},
        {"cells": [SAME | {"test_seconds": "x", "systems": [1]}]},
        {"cells": [SAME | {"systems": ["f0\x1b[2J"]}]},
        {"cells": [], "groups": {"name": "g", "of": [1]}},
        {"cells": [], "schema": 2},
    ],
)
def test_a_header_that_promises_nonsense_is_refused(tmp_path, header):
    path = tmp_path / "scores.npz"
    np.savez(path, header=np.array(json.dumps({"kind": "scores", "schema": 1} | header)))
    with pytest.raises(StoreError, match=r"scores\.npz .*make it again"):
        ScoreFile.from_file(path)


def test_missing_and_contradicting_arrays_are_refused(path):
    arrays = dict(np.load(path))
    for change in ({"0_scores_f0": None}, {"0_target": np.arange(3)}, {"0_speakers": np.eye(2)},
                   {"0_scores_f0": np.array("x")}):  # fmt: skip
        kept = {k: v for k, v in (arrays | change).items() if v is not None}
        np.savez(path, **kept)  # type: ignore[arg-type]
        with pytest.raises(StoreError, match="make it again"):
            read_scores(path, choose=["f0", "cross"])
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(StoreError, match="damaged or cut short"):
        read_scores(path, choose=["f0"])
