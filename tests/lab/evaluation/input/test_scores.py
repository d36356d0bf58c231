"""Every format gives the same matrix."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.errors import UsageError
from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.lab.evaluation.evaluating import evaluate
from monitor.lab.evaluation.family import EvaluationSettings
from monitor.lab.evaluation.input import files
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


def pairs(form, header="", order=None):
    """A list; the form has t, s, x (score) and w (word) in it."""
    lines = []
    for i in range(len(TRIALS)):
        for j in range(len(SPEAKERS)):
            word = "target" if TARGET[i] == j else "nontarget"
            x = repr(float(SCORES[i, j]))
            lines.append(form.format(t=TRIALS[i], s=SPEAKERS[j], x=x, w=word) + "\n")
    if order is not None:
        lines = [lines[i] for i in order]
    return header + "".join(lines)


UTT2SPK = "".join(f"{t} {SPEAKERS[j]}\n" for t, j in zip(TRIALS, TARGET, strict=True))
NAMES = "".join(f"{SPEAKERS[j]}\n" for j in TARGET)
KEY = pairs("{s} {t} {w}")
LABELS = {
    "utt2spk": UTT2SPK,
    "shuffled": "".join(sorted(UTT2SPK.splitlines(keepends=True), reverse=True)),
    "csv": "trial,speaker\n" + UTT2SPK.replace(" ", ","),
    "turned.csv": "speaker,trial\n"
    + "".join(f"{SPEAKERS[j]},{t}\n" for t, j in zip(TRIALS, TARGET, strict=True)),
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
    assert read.notes == ()


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


def test_numbers_alone(file, tmp_path):
    np.savetxt(tmp_path / "s.txt", SCORES)
    labels = file("labels.txt", "".join(f"{j}\n" for j in TARGET))
    same(read_scores(tmp_path / "s.txt", labels), ("0", "1", "2"))


def test_speakers_that_are_numbers(file):
    names = {"ann": "84", "bob": "174", "cid": "1272"}

    def renamed(text):
        for name, number in names.items():
            text = text.replace(name, number)
        return text

    for form in ("kaldi", "wide.csv", "list.csv"):
        read = read_scores(file(form, renamed(FORMS[form])), file("k", renamed(KEY)))
        same(read, ("84", "174", "1272"))


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
        assert read.notes[-1] == "columns have no names: taken for ann to cid, in this order"
    assert read.notes[0] == "rows have no names: labels are taken in the order of u"


@pytest.mark.parametrize("key", ["target", "labels"])
def test_an_archive_brings_everything(file, key):
    same(read_scores(file("s.npz", {"scores": SCORES, key: TARGET, "speakers": SPEAKERS})))
    names = np.array(NAMES.split())
    same(read_scores(file("s.npz", {"scores": SCORES, key: names, "speakers": SPEAKERS})))
    bare = file("bare.npz", {"scores": SCORES})
    same(read_scores(bare, file("t.npy", np.array(TARGET))), ("0", "1", "2"))


def test_labels_beside_win(file):
    given = file("s.npz", {"scores": SCORES, "target": [2, 2, 2, 2], "speakers": SPEAKERS})
    same(read_scores(given, file("u", UTT2SPK)))


def test_the_golden_matrices_survive_every_format(golden, file):
    matrix = golden.matrix("tied_eval")
    scores, target = golden.scores("tied_eval"), golden.target
    rows, columns = np.indices(scores.shape).reshape(2, -1).tolist()
    values = scores.astype(float).ravel().tolist()
    lines = [f"s{j} u{i} {x!r}\n" for i, j, x in zip(rows, columns, values, strict=True)]
    labels = file("utt2spk", "".join(f"u{i} s{j}\n" for i, j in enumerate(target)))
    listed = read_scores(file("scores", "".join(lines)), labels)
    order = [int(name[1:]) for name in listed.matrix.speakers]
    assert order == sorted(order, key=lambda j: f"s{j}")
    np.testing.assert_array_equal(listed.matrix.scores, scores[:, order])
    mapped = read_scores(file("s.npy", scores), file("l.npy", target))
    for read in (listed, mapped):
        np.testing.assert_array_equal(read.matrix.better, matrix.better)
        np.testing.assert_array_equal(read.matrix.tied, matrix.tied)


@given(st.permutations(range(12)), st.sampled_from(["kaldi", "vpc", "list.csv"]))
def test_a_list_may_come_in_any_order(tmp_path_factory, order, form):
    folder = tmp_path_factory.mktemp("any")
    text = FORMS[form]
    lines = text.splitlines(keepends=True)
    head = lines[:-12]
    (folder / "s").write_text("".join([*head, *(lines[len(head) + i] for i in order)]))
    (folder / "k").write_text("".join(KEY.splitlines(keepends=True)[i] for i in reversed(order)))
    matrix = read_scores(folder / "s", folder / "k").matrix
    assert matrix.speakers == SPEAKERS
    assert sorted(zip(matrix.mated, matrix.better, strict=True)) == sorted(
        zip(SCORES[range(4), TARGET], [0, 1, 0, 0], strict=True)
    )


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
    return scores, [*listed, *listed[:2]], owner.tolist(), said.tolist()


@given(st.composite(any_list)(), st.booleans(), st.sampled_from([1, 4, 1 << 20]))
def test_lists_are_read_in_parts_of_any_size(tmp_path_factory, drawn, merged, part):
    """Against a dictionary of what was written; columns are mapped where they are taken apart."""
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
    for (i, j), score in scores.items():
        if (i, j) in listed:
            name = f"o{owner[j]}" if merged else f"m{j}"
            found.setdefault((f"t{i}", name), []).append(score)
    expected = {pair: sum(several) / len(several) for pair, several in found.items()}
    mated = {pair: owner_of(pair[1], owner) == said[int(pair[0][1:])] for pair in expected}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "PART", part)
        patch.setattr(files, "_MOST", 1 << 28 if part > 4 else 0)
        patch.setattr(files, "_CHUNK", 20)
        try:
            every = read_scores(
                folder / "s", folder / "k", enrolment_labels=folder / "m" if merged else None
            ).comparisons
        except UsageError:
            assert len(set(mated.values())) < 2 or not any(owner[j] == said[i] for i, j in listed)
            return
        made = every.listed()
        rows = zip(made.trial, made.speaker, made.scores, made.mated, strict=True)
        got = {(made.trials[i], made.speakers[j]): (x, own) for i, j, x, own in rows}
    assert got.keys() == expected.keys()
    for pair, (score, own) in got.items():
        assert score == pytest.approx(expected[pair], abs=1e-15)
        assert own == mated[pair]


def owner_of(name, owner):
    return owner[int(name[1:])] if name[0] == "m" else int(name[1:])


def test_a_list_in_parts_has_the_figures_of_the_whole(tmp_path, monkeypatch):
    generator = np.random.default_rng(0)
    lines, labels = [], "".join(f"t{i} s{i % 12}\n" for i in range(90))
    for i in range(90):
        met = {i % 12, *generator.choice(12, 5 if i % 3 else 12, replace=False).tolist()}
        lines += [f"s{j} t{i} {generator.normal() + (i % 12 == j):.6f}\n" for j in met]
    generator.shuffle(lines)
    (tmp_path / "s").write_text("".join(lines))
    (tmp_path / "l").write_text(labels)
    whole = read_scores(tmp_path / "s", tmp_path / "l")
    report = evaluate(whole.comparisons, settings=EvaluationSettings(replicates=20))
    monkeypatch.setattr(files, "PART", 50)
    monkeypatch.setattr(files, "_MOST", 0)
    streamed = read_scores(tmp_path / "s", tmp_path / "l")
    assert streamed.notes == whole.notes
    rest = streamed.comparisons.rest
    assert rest is not None
    assert isinstance(rest.scores, np.memmap)
    again = evaluate(streamed.comparisons, settings=EvaluationSettings(replicates=20))
    assert again.notes == report.notes
    for key, figure in report.figures.items():
        for one, other in zip(
            (figure.value, *figure.limits),
            (again[key].value, *again[key].limits),
            strict=True,
        ):
            assert one is other or one == pytest.approx(other, rel=1e-9, abs=1e-12), key


def test_progress_reaches_the_end(file):
    steps = []
    read_scores(
        file("s", FORMS["kaldi"]), file("k", KEY), progress=lambda *step: steps.append(step)
    )
    assert steps
    assert all(done <= total for done, total in steps)


def test_a_target_without_a_score_is_said(file):
    lines = [line for line in FORMS["kaldi"].splitlines(True) if not line.startswith("cid c-1")]
    notes = " ".join(read_scores(file("s", "".join(lines)), file("k", KEY)).notes)
    assert "1 of 12 pairs of k have no score, 1 of them targets" in notes


def test_trials_of_impostors_are_dropped_on_demand(file):
    # VoicePrivacy's lists hold trials of speakers who are not enrolled
    path = file("s", FORMS["kaldi"].replace("cid", "dot"))
    key = file("k", KEY.replace("cid c-1 target", "cid c-1 nontarget").replace("cid", "dot"))
    with pytest.raises(UsageError, match=r"1 of 4 trials have no mated .*first: trial c-1"):
        read_scores(path, key, unmated="refuse")
    read = read_scores(path, key, unmated="drop")
    assert read.matrix.target.tolist() == [0, 0, 1]
    assert read.matrix.scores.tolist() == SCORES[:3].tolist()
    assert "1 of 4 trials has no score with the right speaker" in read.notes[0]
    assert "dropped" in read.notes[0]
    assert "1 of 3 speakers has no trial (first: dot)" in read.notes[1]


def test_notes(file):
    flat = SCORES.copy()
    flat[2] = 0.5
    read = read_scores(file("s.npy", flat), file("l.npy", np.zeros(4, int)))
    assert [note.split(":")[0] for note in read.notes] == [
        "1 of 4 trials scores the same with every speaker (trial 3)",
        "2 of 3 speakers have no trial (first",
        "all trials are of one speaker",
    ]
    uneven = read_scores(
        file("m.npy", np.random.default_rng(0).random((5, 2))), file("n.npy", [0, 0, 0, 0, 1])
    )
    assert uneven.notes[0].startswith("speakers have 1 to 4 trials")
    more = read_scores(file("k", FORMS["kaldi"]), file("u", UTT2SPK + "d-1 ann\n"))
    assert more.notes == ("u speaks of 1 trial without a score",)


def test_a_matrix_is_gone_through_once(file, monkeypatch):
    passes = []
    blocks = ScoreMatrix.blocks

    def counted(matrix):
        passes.append(matrix.trials)
        return blocks(matrix)

    monkeypatch.setattr(ScoreMatrix, "blocks", counted)
    matrix = read_scores(file("s.npy", SCORES), file("l.npy", np.array(TARGET))).matrix
    assert matrix.better.tolist() == [0, 1, 0, 0]
    assert matrix.mated.tolist() == SCORES[range(4), TARGET].tolist()
    assert passes == [4]


def test_evaluate_takes_a_file_and_an_array_in_memory(file):
    expected = evaluate(
        ScoreMatrix(SCORES, np.array(TARGET)), settings=EvaluationSettings(replicates=0)
    )
    of_npz = file("s.npz", {"scores": SCORES, "labels": np.array(TARGET)})
    of_npy, labels = file("s.npy", SCORES), file("labels.npy", np.array(TARGET))
    for made in (
        evaluate(SCORES, settings=EvaluationSettings(replicates=0), labels=TARGET),
        evaluate(
            SCORES.tolist(), settings=EvaluationSettings(replicates=0), labels=np.array(TARGET)
        ),
        evaluate(of_npz, settings=EvaluationSettings(replicates=0)),
        evaluate(str(of_npy), settings=EvaluationSettings(replicates=0), labels=str(labels)),
        evaluate(read_scores(of_npz), settings=EvaluationSettings(replicates=0)),
    ):
        for key, figure in expected.figures.items():
            assert made[key].value == figure.value, key


@pytest.mark.parametrize(
    ("given", "what"),
    [
        (lambda _: evaluate(SCORES), "an array of scores does not say who spoke: give labels="),
        (lambda _: evaluate(SCORES, labels=[0, 1]), "labels has 2 labels for the 4 trials"),
        (lambda _: evaluate(SCORES[0], labels=[0]), "scores are numbers, trials x speakers"),
        (lambda file: evaluate(file("s.npy", SCORES)), "does not say who spoke"),
        (lambda file: evaluate(file("s.npy", SCORES), labels=TARGET), "labels is a list: give a"),
        (
            lambda _: evaluate(ScoreMatrix(SCORES, np.array(TARGET)), labels=TARGET),
            "leave out labels",
        ),
        (
            lambda _: evaluate(SCORES, SCORES, labels=TARGET),  # type: ignore[arg-type]
            "dev is a ndarray: give a ScoreMatrix",
        ),
    ],
)
def test_what_evaluate_cannot_take_is_refused_in_a_line(file, given, what):
    with pytest.raises(UsageError, match=what):
        given(file)
