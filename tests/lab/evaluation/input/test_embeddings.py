"""Embeddings are scored by cosine; results of VoicePrivacy are read as their scripts leave them."""

import json
import os
import shutil
import tempfile
from typing import Any

import numpy as np
import pytest

from monitor.errors import MonitorError, StoreError, UsageError
from monitor.lab.evaluation import memory as room
from monitor.lab.evaluation.input.embeddings import read_embeddings
from monitor.lab.evaluation.input.files import read_map
from monitor.lab.evaluation.srd import is_undertrained
from monitor.lab.evaluation.verification import eer
from monitor.lab.evaluation.voiceprivacy import SpeakerVectors, VoicePrivacyResults, read_trials
from monitor.maths.scores import unit_vectors
from tests.lab.evaluation import kits
from tests.lab.evaluation.lists import speechbrain_eer
from tests.lab.evaluation.matrices import pools

GENERATOR = np.random.default_rng(3)
ENROLMENT = GENERATOR.standard_normal((7, 5))
OWNERS = ["bob", "ann", "bob", "cid", "ann", "bob", "bob"]
TRIALS = GENERATOR.standard_normal((4, 5))
SPOKEN = ["ann", "bob", "cid", "ann"]


def expected(scoring):
    rows = []
    for trial in unit_vectors(TRIALS):
        row = []
        for speaker in ("ann", "bob", "cid"):
            own = unit_vectors(ENROLMENT[[owner == speaker for owner in OWNERS]])
            each = own @ trial
            row.append(each.max() if scoring == "max" else unit_vectors(own.mean(axis=0)) @ trial)
        rows.append(row)
    return np.array(rows)


def as_npz(path, vectors, speakers, sessions=None):
    more = {} if sessions is None else {"sessions": sessions}
    np.savez(path, embeddings=vectors, speakers=speakers, **more)


def as_json(path, vectors, speakers, sessions=None):
    sessions = sessions or [""] * len(speakers)
    lines = [
        json.dumps({"speaker": who, "session": when, "embedding": vector.tolist()})
        for who, when, vector in zip(speakers, sessions, vectors, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")


def as_table(path, vectors, speakers, sessions=None):
    sessions = sessions or [""] * len(speakers)
    lines = ["speaker,session," + ",".join(f"e{i}" for i in range(vectors.shape[1]))]
    for who, when, vector in zip(speakers, sessions, vectors, strict=True):
        lines.append(f"{who},{when}," + ",".join(map(repr, vector.tolist())))
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(params=[as_npz, as_json, as_table])
def files(tmp_path, request):
    suffix = {as_npz: ".npz", as_json: ".jsonl", as_table: ".csv"}[request.param]

    def write(sessions=(None, None)):
        trials, enrolment = tmp_path / f"t{suffix}", tmp_path / f"e{suffix}"
        request.param(trials, TRIALS, SPOKEN, sessions[0])
        request.param(enrolment, ENROLMENT, OWNERS, sessions[1])
        return trials, enrolment

    return write


@pytest.mark.parametrize("scoring", ["average", "max"])
def test_scores_are_cosines(files, scoring):
    trials, enrolment = files()
    read = read_embeddings(trials, enrolment, scoring)
    assert read.matrix.speakers == ("ann", "bob", "cid")
    assert read.matrix.target.tolist() == [0, 1, 2, 0]
    assert read.matrix.name == "t"
    np.testing.assert_allclose(read.matrix.scores, expected(scoring), atol=1e-7)
    assert read.notes == ()
    # lengths and order do not matter
    order, scale = [6, 2, 0, 1, 3, 5, 4], np.arange(1.0, 8.0)[:, None]
    as_npz(trials.with_name("t.npz"), TRIALS * 7, SPOKEN)
    as_npz(enrolment.with_name("e.npz"), (ENROLMENT * scale)[order], [OWNERS[i] for i in order])
    read = read_embeddings(trials.with_name("t.npz"), enrolment.with_name("e.npz"), scoring)
    np.testing.assert_allclose(read.matrix.scores, expected(scoring), atol=1e-7)


def test_nearly_equal_voices_differ_and_equal_ones_tie(tmp_path):
    """An anonymiser may move all voices to one place: cosines then differ by 1e-9 and less."""
    generator = np.random.default_rng(8)
    voices = 1.0 + 3e-5 * generator.normal(size=(9, 64))
    voices = np.concatenate([voices, voices[:1]])
    as_npz(tmp_path / "e.npz", voices, list("abcdefghij"))
    as_npz(tmp_path / "t.npz", voices[:9] * 3 + 1e-6 * generator.normal(size=(9, 64)),
           list("abcdefghi"))  # fmt: skip
    matrix = read_embeddings(tmp_path / "t.npz", tmp_path / "e.npz").matrix
    assert matrix.better.tolist() == [0] * 9
    assert matrix.tied.tolist() == [2] + [1] * 8  # j has the voice of a


def test_a_speaker_in_two_spellings_is_refused(tmp_path):
    as_npz(tmp_path / "t.npz", TRIALS, ["Ann", *SPOKEN[1:]])
    as_npz(tmp_path / "e.npz", ENROLMENT, OWNERS)
    with pytest.raises(UsageError, match=r"t\.npz and e\.npz: speaker ann is also written Ann"):
        read_embeddings(tmp_path / "t.npz", tmp_path / "e.npz")
    as_npz(tmp_path / "t.npz", TRIALS, SPOKEN)
    as_npz(tmp_path / "c.npz", ENROLMENT, ["Bob", *"abcdef"])
    with pytest.raises(UsageError, match=r"c\.npz: speaker bob is also written Bob"):
        read_embeddings(
            tmp_path / "t.npz", tmp_path / "e.npz", normalise="t", cohort=tmp_path / "c.npz"
        )


def planted(offset_of_trials):
    """Trials, enrolments and a cohort; one side has its own amount of a direction of all voices."""
    generator = np.random.default_rng(8)
    voices = unit_vectors(generator.normal(size=(12, 6)))
    trials = unit_vectors(voices.repeat(5, axis=0) + 0.5 * generator.normal(size=(60, 6)))
    axes = np.concatenate([np.eye(6), -np.eye(6)])  # cosines: mean 0, the same spread for all
    steady, sides = np.ones((len(axes), 1)), [trials, voices]
    changed = 0 if offset_of_trials else 1
    own = generator.uniform(0, 4, (len(sides[changed]), 1))
    shifted = [np.hstack([side, np.ones((len(side), 1))]) for side in sides]
    shifted[changed][:, -1:] = own
    return trials @ voices.T, shifted, np.hstack([axes, steady])


@pytest.mark.parametrize("method", ["t", "z"])
def test_a_cohort_removes_a_planted_offset(tmp_path, method):
    """The scores are those without the offset, in a known unit, so every rank is the true one."""
    truth, (trials, enrolled), cohort = planted(method == "t")
    who = np.arange(12).astype("U2")
    as_npz(tmp_path / "t.npz", trials, who.repeat(5))
    as_npz(tmp_path / "e.npz", enrolled, who)
    as_npz(tmp_path / "c.npz", cohort, [f"other {i}" for i in range(12)])
    files = tmp_path / "t.npz", tmp_path / "e.npz"
    order = np.argsort(truth, axis=None)
    plain = read_embeddings(*files).matrix.scores
    assert np.argsort(plain, axis=None).tolist() != order.tolist()
    read = read_embeddings(*files, normalise=method, cohort=tmp_path / "c.npz")
    np.testing.assert_allclose(read.matrix.scores, truth * np.sqrt(6), atol=2e-6)
    assert np.argsort(read.matrix.scores, axis=None).tolist() == order.tolist()
    assert read.notes[0] == (
        f"scores are normalised ({method}-norm) by 12 speakers of c.npz, too few for stable scores"
    )


@pytest.mark.parametrize("method", ["z", "t", "s", "as"])
def test_normalised_scores_are_those_of_the_definition(files, tmp_path, method, monkeypatch):
    """One cosine after another; a speaker of the cohort is the mean of unit embeddings."""
    cohort = np.random.default_rng(5).standard_normal((30, 5))
    others = [f"o{i % 9}" for i in range(30)]
    as_npz(tmp_path / "c.npz", cohort, others)
    monkeypatch.setattr("monitor.lab.normalisation.CLOSEST", 4)
    monkeypatch.setattr("monitor.lab.evaluation.input.embeddings._BLOCK", 20)  # several blocks

    def template(values, owners, who):
        own = [v / np.linalg.norm(v) for v, o in zip(values, owners, strict=True) if o == who]
        return np.mean(own, axis=0)

    def relative(score, one, several):
        found = sorted(cosine(one, other) for other in several)[-4 if method == "as" else 0 :]
        return (score - np.mean(found)) / np.std(found)

    def cosine(one, other):
        return one @ other / np.linalg.norm(one) / np.linalg.norm(other)

    templates = [template(ENROLMENT, OWNERS, who) for who in ("ann", "bob", "cid")]
    background = [template(cohort, others, f"o{i}") for i in range(9)]
    rows = []
    for trial in TRIALS:
        for one in templates:
            score = cosine(trial, one)
            z, t = relative(score, one, background), relative(score, trial, background)
            rows.append({"z": z, "t": t}.get(method, (z + t) / 2))
    read = read_embeddings(*files(), normalise=method, cohort=tmp_path / "c.npz")
    np.testing.assert_allclose(read.matrix.scores.reshape(-1), rows, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"normalise": "s"}, "normalise and cohort go together"),
        ({"cohort": "c.npz"}, "normalise and cohort go together"),
        ({"normalise": "x", "cohort": "c.npz"}, "invalid normalise='x': use one of z, t, s, as"),
        ({"normalise": "s", "cohort": "c.npz", "scoring": "max"}, "needs scoring=average"),
        ({"normalise": "s", "cohort": "e.npz"}, "ann, bob, cid of e.npz would be scored"),
        ({"normalise": "s", "cohort": "one.npz"}, "one.npz has one speaker; normalisation needs"),
        ({"normalise": "s", "cohort": "other.npz"}, "has 5 dimensions and other.npz 4"),
        ({"normalise": "s", "cohort": "zero.npz"}, "embedding 2 (speaker o1) is all zero"),
    ],
)
def test_a_cohort_that_cannot_normalise_is_refused(tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    others, more = ["o0", "o1", "o2", "o3"], np.random.default_rng(5).standard_normal((4, 5))
    for name, vectors, who in (
        ("t", TRIALS, SPOKEN), ("e", ENROLMENT, OWNERS), ("c", more, others),
        ("one", more, ["o0"] * 4), ("other", more[:, :4], others), ("zero", zero(more, 1), others),
    ):  # fmt: skip
        as_npz(tmp_path / f"{name}.npz", vectors, who)
    with pytest.raises(UsageError) as caught:
        read_embeddings("t.npz", "e.npz", **options)
    assert message in str(caught.value)


def test_what_both_files_share_is_said(files, tmp_path):
    sessions = ["1", "1", "1", "2"], ["1", "9", "8", "7", "2", "8", "8"]
    read = read_embeddings(*files(sessions))
    (note,) = read.notes
    assert note.startswith("2 of 4 trials share a session with the enrolment")
    assert "(first: trial 2)" in note
    as_npz(tmp_path / "all.npz", ENROLMENT, OWNERS)
    read = read_embeddings(tmp_path / "all.npz", tmp_path / "all.npz", "max")
    assert read.notes[0].startswith("7 of 7 trials are enrolled themselves (first: trial 1)")
    as_npz(tmp_path / "silent.npz", zero(TRIALS, 1), SPOKEN)
    read = read_embeddings(tmp_path / "silent.npz", tmp_path / "all.npz")
    assert "1 of 4 trials scores the same with every speaker (trial 2)" in read.notes[0]


def test_a_large_matrix_lies_in_a_private_file_without_a_name(tmp_path, monkeypatch):
    monkeypatch.setattr(room, "_MOST", 8)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    as_npz(tmp_path / "t.npz", TRIALS, SPOKEN)
    as_npz(tmp_path / "e.npz", ENROLMENT, OWNERS)
    seen, steps = [], []
    made = tempfile.TemporaryFile

    def watched():
        file = made()
        seen.append(os.fstat(file.fileno()).st_mode & 0o777)
        return file

    monkeypatch.setattr(tempfile, "TemporaryFile", watched)
    read = read_embeddings(
        tmp_path / "t.npz", tmp_path / "e.npz", progress=lambda *step: steps.append(step)
    )
    assert isinstance(read.matrix.scores, np.memmap)
    assert seen == [0o600]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e.npz", "t.npz"]
    assert steps[-1] == (4, 4)
    np.testing.assert_allclose(read.matrix.scores, expected("average"), atol=1e-7)
    with pytest.raises(MonitorError, match="no room for 8000000000"):
        room.scratch((10**9, 10**9))


def zero(vectors, row):
    vectors = vectors.copy()
    vectors[row] = 0
    return vectors


ONE_NAN = np.where(np.arange(20).reshape(4, 5) == 13, np.nan, TRIALS)
BAD: dict[str, Any] = {
    "dimensions": ((TRIALS[:, :4], SPOKEN), None, "t.npz has 4 dimensions and e.npz 5"),
    "nan": ((ONE_NAN, SPOKEN), None, "t.npz: embedding 3 (speaker cid) is not finite"),
    "zero": (None, (zero(ENROLMENT, 3), OWNERS), "e.npz: embedding 4 (speaker cid) is all zero"),
    "one": (None, (ENROLMENT[:1], ["ann"]), "e.npz has one speaker; a comparison needs at least"),
    "impostors": (
        (TRIALS, ["eve", "dot", "fay", "eve"]),
        None,
        "4 of 4 trials of t have no mated score",
    ),
    "count": ((TRIALS, SPOKEN[:3]), None, "t.npz has 4 embeddings, 3 speakers and 0 sessions"),
    "flat": ((TRIALS[0], SPOKEN), None, "not float64 of shape (5,)"),
    "objects": ((TRIALS, np.array(SPOKEN, object)), None, "contains Python objects"),
    "empty": ("", None, "is empty"),
    "no speaker": ("a,b\n1,2\n", None, "line 1: name the columns: speaker"),
    "no object": ('{"speaker": "a", "embedding": [1]}\n[1]\n', None, "line 2 is not a JSON object"),
    "sizes": (
        '{"speaker": "a", "embedding": [1]}\n{"speaker": "b", "embedding": [1, 2]}\n',
        None,
        "embeddings have 1 to 2 dimensions",
    ),
    "npy": (kits.array_file(TRIALS), None, "has no speakers"),
    "npz": ({"x": TRIALS}, None, "needs embeddings (n, d) and speakers (n,), not x"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_scored(tmp_path, case):
    trials, enrolment, message = BAD[case]
    path = tmp_path / "t.npz"
    if isinstance(trials, dict):
        np.savez(path, **trials)
    elif isinstance(trials, str | bytes):
        path = tmp_path / "t"
        path.write_bytes(trials.encode() if isinstance(trials, str) else trials)
    else:
        as_npz(path, *(trials or (TRIALS, SPOKEN)))
    as_npz(tmp_path / "e.npz", *(enrolment or (ENROLMENT, OWNERS)))
    refused(message, path, tmp_path / "e.npz")
    refused("invalid scoring='plda': use one of average, max", tmp_path, tmp_path, "plda")


def refused(message, *arguments):
    with pytest.raises(MonitorError) as caught:
        read_embeddings(*arguments)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def pick(results: VoicePrivacyResults, *words: str) -> Any:
    (entry,) = results.choose(words)
    return entry


def pools_of(read):
    return pools(read.comparisons)


def test_a_pickle_is_refused_with_the_line_that_converts(tmp_path):
    results = VoicePrivacyResults.find(kits.kit(tmp_path))
    entry = pick(results, "f", "oo")
    vectors = entry.trials / "utt-level" / "speaker_vectors.npy"
    vectors.rename(vectors.with_suffix(".pt"))
    with pytest.raises(StoreError, match=r"\.pt are never loaded.*numpy\.save") as error:
        results.read(entry, "mine")
    assert "\n" not in str(error.value)


def test_every_list_and_scenario_is_found(tmp_path):
    results = VoicePrivacyResults.find(kits.kit(tmp_path))
    assert [entry.words for entry in results.entries] == [
        ("libri_dev", part, scenario, "mcadams" if "a" in scenario else "")
        for part in "fm"
        for scenario in ("oo", "oa", "aa")
    ]
    assert results.data == tmp_path / "data"
    assert len(results.choose(["aa", "oo", "f"])) == 2
    with pytest.raises(UsageError, match="has no xx; it has libri_dev f oo oa mcadams aa m"):
        results.choose(["xx"])
    by_hand = VoicePrivacyResults.find(tmp_path / "exp" / "asv_orig" / "cosine_out" / "emb_xvect")
    assert len(by_hand.entries) == 6


@pytest.mark.parametrize("words", [("f", "oo"), ("m", "oa"), ("f", "aa")])
def test_the_error_rate_is_that_of_the_challenge(tmp_path, words):
    """Cosines with the mean of the vectors as they are, and speechbrain's EER."""
    results = VoicePrivacyResults.find(kits.kit(tmp_path))
    entry = pick(results, *words)
    read = results.read(entry, "mine")
    trials = SpeakerVectors.from_folder(entry.trials / "utt-level")
    enrolled = SpeakerVectors.from_folder(entry.enrolment / "spk-level")
    scores: dict[bool, list[float]] = {True: [], False: []}
    for speaker, utterance, target in read_trials(entry.listed):
        one, two = enrolled.values[enrolled.row[speaker]], trials.values[trials.row[utterance]]
        scores[target].append(float(one @ two / np.linalg.norm(one) / np.linalg.norm(two)))
    mated, others = (np.array(scores[kind]) for kind in (True, False))
    found = pools_of(read)
    assert np.sort(found[0]) == pytest.approx(np.sort(mated), abs=1e-12)
    assert np.sort(found[1]) == pytest.approx(np.sort(others), abs=1e-12)
    expected = speechbrain_eer(mated, others)
    assert eer(found[0], found[1], "nearest") == pytest.approx(expected, abs=0.02)
    beside = results.path / f"{entry.enrolment.name}-{entry.trials.name}"
    beside.mkdir()
    (beside / "EER").write_text(str(eer(found[0], found[1], "nearest")))
    assert not results.read(entry, "mine").warnings or words[1] != "oo"
    (beside / "EER").write_text("0.4999")
    assert "they are from different runs" in results.read(entry, "mine").warnings[0]
    (beside / "EER").write_text("much")
    with pytest.raises(UsageError, match="EER contains no number"):
        results.read(entry, "mine")


@pytest.mark.parametrize(("own", "marked"), [(0.4, False), (6.0, True)])
def test_an_attacker_who_tells_too_little_of_clear_speech_is_marked(tmp_path, own, marked):
    path = kits.kit(tmp_path, own)
    results = VoicePrivacyResults.find(path)
    read = results.read(pick(results, "f", "aa"), "mine")
    assert any("looks undertrained" in each for each in read.warnings) == marked
    assert any("The attacker is trained" in each for each in read.notes) != marked
    assert not results.read(pick(results, "f", "oo"), "mine").warnings
    elsewhere = tmp_path / "kept"
    shutil.move(tmp_path / "exp" / "asv_orig", elsewhere)
    unknown = results.read(pick(results, "f", "aa"), "mine")
    assert any("without results of asv_orig" in each for each in unknown.notes)
    told = results.read(pick(results, "f", "aa"), "mine", clear=elsewhere)
    assert any("looks undertrained" in each for each in told.warnings) == marked
    assert is_undertrained(0.89, 1.0)
    assert not is_undertrained(0.9, 1.0)


def test_speakers_are_those_of_utt2spk_however_rows_are_mixed_up(tmp_path):
    """The scripts of 2024 sort the rows of idx2spk as texts where they read embeddings back."""
    results = VoicePrivacyResults.find(kits.kit(tmp_path))
    entry = pick(results, "f", "oo")
    sound = pools_of(results.read(entry, "mine"))
    rows = read_map(entry.enrolment / "utt-level" / "idx2spk")
    mixed = [rows[key] for key in sorted(rows)]
    vectors = SpeakerVectors.from_folder(entry.enrolment / "utt-level")
    (entry.enrolment / "utt-level" / "idx2spk").write_text(
        "".join(f"{i} {speaker}\n" for i, speaker in enumerate(mixed))
    )
    shutil.rmtree(entry.enrolment / "spk-level")
    assert pools_of(results.read(entry, "mine"))[0].tolist() == pytest.approx(sound[0].tolist())
    own: dict[str, list[int]] = {}
    for i, speaker in enumerate(mixed):
        own.setdefault(speaker, []).append(i)
    kept = entry.enrolment / "spk-level"
    kits.write_map(kept / "id2idx", {speaker: i for i, speaker in enumerate(own)})
    means = np.stack([vectors.values[some].mean(axis=0) for some in own.values()])
    np.save(kept / "speaker_vectors.npy", means)
    read = results.read(entry, "mine")
    assert any("are not the means of their utterances" in note for note in read.notes)


def test_the_kit_of_2026_has_mixed_lists_and_names_with_wav(tmp_path):
    enrolled, trials = kits.readers()
    dataset = "de_dev"
    kits.lists(tmp_path, dataset, enrolled, {"mixed": trials})
    results = tmp_path / "exp" / "asv_anon_track2_10_de_ssl"
    wav = [kits.Said(f"{each.name}.wav", each.speaker, each.gender) for each in trials]
    kits.cached(results, f"{dataset}_enrolls", enrolled, kits.drawn(enrolled, 1.0), means=True)
    kits.cached(results, f"{dataset}_trials_mixed", wav, kits.drawn(wav, 1.0))
    found = VoicePrivacyResults.find(results)
    read = found.read(pick(found, "mixed"), "mine")
    assert read.matrix.scores.shape == (60, 12)
    path = tmp_path / "data" / f"{dataset}_trials_mixed" / "trials"
    path.write_text(path.read_text() + "1000 gone-1-0000 nontarget\n")
    more = found.read(pick(found, "mixed"), "mine")
    assert any("1 of 721 listed pairs have no embedding" in note for note in more.notes)


def broken(root, file, text):
    path = kits.kit(root)
    folder = path / "cosine_out" / "emb_xvect" / "libri_dev_trials_f" / "utt-level"
    file = root / file if file.startswith("data") else folder / file
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return VoicePrivacyResults.find(path)


@pytest.mark.parametrize(
    ("file", "text", "what"),
    [
        ("id2idx", "", "id2idx is empty"),
        ("id2idx", "a 99\n", "a: row 99"),
        ("id2idx", "a 1\n", "no listed pair of "),
        ("idx2spk", "x y\n", "in idx2spk is not a row"),
        ("speaker_vectors.npy", "text", "contains Python objects"),
        ("speaker_vectors.npy", kits.array_file(np.ones(3)), "has shape"),
        ("speaker_vectors.npy", kits.array_file(np.ones((30, 4))), "use one network for both"),
        ("speaker_vectors.npy", kits.array_file(np.full((30, 16), np.nan)), "is not finite"),
        ("data/libri_dev_trials_f/trials", "1 2\n", "is not SPEAKER UTTERANCE target|nontarget"),
        ("data/libri_dev_trials_f/trials", "a b target\na b nontarget\n", "is both target and"),
        ("data/libri_dev_enrolls/utt2spk", b"\xff\xfea", "is UTF-16"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_one_line(tmp_path, file, text, what):
    results = broken(tmp_path, file, text)
    with pytest.raises((UsageError, StoreError)) as error:
        results.read(pick(results, "f", "oo"), "mine")
    assert what in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("folder", ["", "plda_out", "cosine_out/emb_xvect"])
def test_another_folder_is_refused(tmp_path, folder):
    (tmp_path / "results" / folder).mkdir(parents=True)
    with pytest.raises(UsageError, match="emb_xvect"):
        VoicePrivacyResults.find(tmp_path / "results")


def write_archive(path, rows: dict[str, Any], owners: dict[str, str]) -> None:
    kaldiio = pytest.importorskip("kaldiio", reason="needs kaldiio")
    path.parent.mkdir()
    kaldiio.save_ark(str(path), rows, scp=str(path.with_suffix(".scp")))
    (path.parent / "utt2spk").write_text("".join(f"{u} {s}\n" for u, s in owners.items()))


@pytest.mark.parametrize("suffix", [".ark", ".scp"])
def test_archives_of_kaldi_are_embeddings(tmp_path, suffix):
    enrolled = {f"e{i}": row for i, row in enumerate(ENROLMENT)}
    tested = {f"t{i}": row[None].astype(np.float32) for i, row in enumerate(TRIALS)}  # (1, d)
    write_archive(tmp_path / "enrol" / "x.ark", enrolled, dict(zip(enrolled, OWNERS, strict=True)))
    write_archive(tmp_path / "test" / "x.ark", tested, dict(zip(tested, SPOKEN, strict=True)))
    read = read_embeddings(tmp_path / f"test/x{suffix}", tmp_path / f"enrol/x{suffix}")
    assert read.matrix.scores == pytest.approx(expected("average"), abs=1e-6)
    assert read.matrix.target.tolist() == [0, 1, 2, 0]


def test_keys_of_an_archive_may_be_speakers(tmp_path):
    means = dict(zip(("ann", "bob"), TRIALS, strict=False))
    write_archive(tmp_path / "a" / "spk.ark", means, {"u1": "ann", "u2": "bob"})
    assert read_embeddings(*[tmp_path / "a" / "spk.ark"] * 2).matrix.speakers == ("ann", "bob")


@pytest.mark.parametrize(
    ("rows", "owners", "change", "said"),
    [
        ({"u": np.ones((300, 8))}, {"u": "ann"}, None, r"u has shape \(300, 8\)"),
        ({"u": np.ones(8)}, {"v": "ann"}, None, "u has no speaker in utt2spk"),
        ({"u": np.ones(8)}, {"u": "ann"}, lambda whole: whole[:-3], "damaged or cut short"),
        ({"u": np.ones(8)}, {"u": "ann"}, lambda whole: whole + whole, "u twice"),
        ({"u": np.ones(8)}, {"u": "ann"}, lambda _: b"u PKL\x80\x04N.", "not a vector"),
        ({"u": np.ones(8), "v": np.ones(7)}, dict.fromkeys("uv", "ann"), None, "7 to 8 dim"),
        ({"u": np.full(8, np.nan)}, {"u": "ann"}, None, "not finite"),
    ],
)
def test_other_archives_are_refused(tmp_path, rows, owners, change, said):
    path = tmp_path / "a" / "x.ark"
    write_archive(path, rows, owners)
    if change is not None:
        path.write_bytes(change(path.read_bytes()))
    with pytest.raises(MonitorError, match=said):
        read_embeddings(path, path)


def test_a_command_in_a_list_is_never_run(tmp_path):
    write_archive(tmp_path / "a" / "x.ark", {"u": np.ones(8)}, {"u": "ann"})
    (tmp_path / "a" / "x.scp").write_text(f"u touch {tmp_path}/ran |\n")
    with pytest.raises(UsageError, match=r"line 1: use KEY FILE\.ark:OFFSET"):
        read_embeddings(*[tmp_path / "a" / "x.scp"] * 2)
    assert not (tmp_path / "ran").exists()
