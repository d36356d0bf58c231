"""Results of the VoicePrivacy Challenges, read as their scripts leave them."""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from monitor.anonymisers import protect
from monitor.corpus import find
from monitor.errors import StoreError, UsageError
from monitor.lab.evaluation.input.embeddings import (
    SpeakerVectors,
    VoicePrivacyResults,
    read_map,
    read_trials,
)
from monitor.lab.evaluation.srd import is_undertrained
from monitor.lab.evaluation.verification import eer
from monitor.training import collect
from tests.lab.evaluation import kits
from tests.lab.evaluation.lists import speechbrain_eer


def nearest(read) -> float:
    mated, others = pools(read)
    return eer(mated, others, "nearest")


def only(results: VoicePrivacyResults, *words: str) -> Any:
    (entry,) = results.choose(words)
    return entry


def pools(read):
    every = read.comparisons
    return every.mated, np.concatenate([block.ravel() for _, block in every.non_mated_blocks()])


def test_a_pickle_is_refused_with_the_line_that_converts(tmp_path):
    results = VoicePrivacyResults.at(kits.kit(tmp_path))
    entry = only(results, "f", "oo")
    vectors = entry.trials / "utt-level" / "speaker_vectors.npy"
    vectors.rename(vectors.with_suffix(".pt"))
    with pytest.raises(StoreError, match=r"speaker_vectors\.pt is a pickle.*numpy\.save") as error:
        results.read(entry, "mine")
    assert "\n" not in str(error.value)


def test_the_line_that_converts_does(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch", reason="needs the extra peers")
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "exp" / "asv_orig" / "utt-level"
    folder.mkdir(parents=True)
    values = torch.arange(6.0).reshape(2, 3)
    torch.save(values, folder / "speaker_vectors.pt")
    with pytest.raises(StoreError) as error:
        SpeakerVectors.at(folder)
    subprocess.run(str(error.value).rpartition(": ")[2].replace("python", sys.executable, 1),
                   shell=True, check=True)  # fmt: skip
    assert np.load(folder / "speaker_vectors.npy").tolist() == values.tolist()


# ----------------------------------------------------------------------------------------- results


def test_every_list_and_scenario_is_found(tmp_path):
    results = VoicePrivacyResults.at(kits.kit(tmp_path))
    assert [entry.words for entry in results.entries] == [
        ("libri_dev", part, scenario, "mcadams" if "a" in scenario else "")
        for part in "fm"
        for scenario in ("oo", "oa", "aa")
    ]
    assert results.data == tmp_path / "data"
    assert len(results.choose(["aa", "oo", "f"])) == 2
    with pytest.raises(UsageError, match="has no xx; it has libri_dev f oo oa mcadams aa m"):
        results.choose(["xx"])
    by_hand = VoicePrivacyResults.at(tmp_path / "exp" / "asv_orig" / "cosine_out" / "emb_xvect")
    assert len(by_hand.entries) == 6


@pytest.mark.parametrize("words", [("f", "oo"), ("m", "oa"), ("f", "aa")])
def test_the_error_rate_is_that_of_the_challenge(tmp_path, words):
    """Cosines with the mean of the vectors as they are, and speechbrain's EER."""
    results = VoicePrivacyResults.at(kits.kit(tmp_path))
    entry = only(results, *words)
    read = results.read(entry, "mine")
    trials = SpeakerVectors.at(entry.trials / "utt-level")
    enrolled = SpeakerVectors.at(entry.enrolment / "spk-level")
    scores: dict[bool, list[float]] = {True: [], False: []}
    for speaker, utterance, target in read_trials(entry.listed):
        one, two = enrolled.values[enrolled.row[speaker]], trials.values[trials.row[utterance]]
        scores[target].append(float(one @ two / np.linalg.norm(one) / np.linalg.norm(two)))
    mated, others = (np.array(scores[kind]) for kind in (True, False))
    found = pools(read)
    assert np.sort(found[0]) == pytest.approx(np.sort(mated), abs=1e-12)
    assert np.sort(found[1]) == pytest.approx(np.sort(others), abs=1e-12)
    expected = speechbrain_eer(mated, others)
    assert eer(found[0], found[1], "nearest") == pytest.approx(expected, abs=0.02)
    beside = results.path / f"{entry.enrolment.name}-{entry.trials.name}"
    beside.mkdir()
    (beside / "EER").write_text(str(eer(found[0], found[1], "nearest")))
    assert not results.read(entry, "mine").warnings or words[1] != "oo"
    (beside / "EER").write_text("0.4999")
    assert "they are not of one run" in results.read(entry, "mine").warnings[0]
    (beside / "EER").write_text("much")
    with pytest.raises(UsageError, match="EER holds no number"):
        results.read(entry, "mine")


@pytest.mark.parametrize(("own", "marked"), [(0.4, False), (6.0, True)])
def test_an_attacker_who_tells_too_little_of_clear_speech_is_marked(tmp_path, own, marked):
    path = kits.kit(tmp_path, own)
    results = VoicePrivacyResults.at(path)
    read = results.read(only(results, "f", "aa"), "mine")
    assert any("looks undertrained" in each for each in read.warnings) == marked
    assert any("The attacker is trained" in each for each in read.notes) != marked
    assert not results.read(only(results, "f", "oo"), "mine").warnings
    elsewhere = tmp_path / "kept"
    shutil.move(tmp_path / "exp" / "asv_orig", elsewhere)
    unknown = results.read(only(results, "f", "aa"), "mine")
    assert any("cannot be told without results of asv_orig" in each for each in unknown.notes)
    told = results.read(only(results, "f", "aa"), "mine", clear=elsewhere)
    assert any("looks undertrained" in each for each in told.warnings) == marked
    assert is_undertrained(0.89, 1.0)
    assert not is_undertrained(0.9, 1.0)


def test_speakers_are_those_of_utt2spk_however_rows_are_mixed_up(tmp_path):
    """The scripts of 2024 sort the rows of idx2spk as texts where they read embeddings back."""
    results = VoicePrivacyResults.at(kits.kit(tmp_path))
    entry = only(results, "f", "oo")
    sound = pools(results.read(entry, "mine"))
    rows = read_map(entry.enrolment / "utt-level" / "idx2spk")
    mixed = [rows[key] for key in sorted(rows)]
    vectors = SpeakerVectors.at(entry.enrolment / "utt-level")
    (entry.enrolment / "utt-level" / "idx2spk").write_text(
        "".join(f"{i} {speaker}\n" for i, speaker in enumerate(mixed))
    )
    shutil.rmtree(entry.enrolment / "spk-level")
    assert pools(results.read(entry, "mine"))[0].tolist() == pytest.approx(sound[0].tolist())
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
    found = VoicePrivacyResults.at(results)
    read = found.read(only(found, "mixed"), "mine")
    assert read.matrix.scores.shape == (60, 12)
    path = tmp_path / "data" / f"{dataset}_trials_mixed" / "trials"
    path.write_text(path.read_text() + "1000 gone-1-0000 nontarget\n")
    more = found.read(only(found, "mixed"), "mine")
    assert any("1 of 721 listed pairs have no embedding" in note for note in more.notes)


def test_a_missing_list_of_trials_is_asked_for(tmp_path):
    path = kits.kit(tmp_path)
    shutil.rmtree(tmp_path / "data")
    results = VoicePrivacyResults.at(path)
    with pytest.raises(UsageError, match="libri_dev_trials_f has no list of trials: say where"):
        results.read(only(results, "f", "oo"), "mine")


def broken(root, file, text):
    path = kits.kit(root)
    folder = path / "cosine_out" / "emb_xvect" / "libri_dev_trials_f" / "utt-level"
    file = root / file if file.startswith("data") else folder / file
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return VoicePrivacyResults.at(path)


@pytest.mark.parametrize(
    ("file", "text", "what"),
    [
        ("id2idx", "", "id2idx is empty"),
        ("id2idx", "a\n", "line 1: is not a name and a word"),
        ("id2idx", "a 0\na 1\n", "a is listed twice"),
        ("id2idx", "a 0\nb 0\n", "two of one row"),
        ("id2idx", "a 99\n", "a: row 99"),
        ("id2idx", "a -1\n", "is no row"),
        ("id2idx", "a 1\n", "no listed pair has embeddings"),
        ("idx2spk", "x y\n", "in idx2spk is no row"),
        ("speaker_vectors.npy", "text", "holds Python objects"),
        ("speaker_vectors.npy", kits.array_file(np.ones(3)), "has shape"),
        ("speaker_vectors.npy", kits.array_file(np.full((30, 16), "a")), "has shape"),
        ("speaker_vectors.npy", kits.array_file(np.ones((30, 4))), "take both from one network"),
        ("speaker_vectors.npy", kits.array_file(np.full((30, 16), np.nan)), "is not finite"),
        ("speaker_vectors.npy", kits.array_file(np.zeros((30, 16))), "is all zero"),
        ("data/libri_dev_trials_f/trials", "1 2\n", "is not SPEAKER UTTERANCE target|nontarget"),
        ("data/libri_dev_trials_f/trials", "a b target\na b nontarget\n", "is a target and is"),
        ("data/libri_dev_enrolls/utt2spk", b"\xff\xfea", "is UTF-16"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_one_line(tmp_path, file, text, what):
    results = broken(tmp_path, file, text)
    with pytest.raises((UsageError, StoreError)) as error:
        results.read(only(results, "f", "oo"), "mine")
    assert what in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("folder", ["", "plda_out", "cosine_out/emb_xvect"])
def test_another_folder_is_refused(tmp_path, folder):
    (tmp_path / "results" / folder).mkdir(parents=True)
    with pytest.raises(UsageError, match="emb_xvect"):
        VoicePrivacyResults.at(tmp_path / "results")


# ------------------------------------------------------------------------------------- real readers

SECONDS = 6.0


@pytest.fixture(scope="module")
def spoken(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kit of ten readers of dev-clean, as they are and by McAdams coefficients."""
    root = tmp_path_factory.mktemp("kit")
    with (shared / "speech" / "manifest.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["corpus"] == "dev-clean"]
    genders = {row["speaker"]: row["gender"].lower() for row in rows}
    chapters: dict[str, list[str]] = {}
    for row in rows:
        chapters.setdefault(row["speaker"], []).append(row["path"])
    several = sorted(s for s in chapters if len(chapters[s]) > 1)
    people = [s for g in "fm" for s in several if genders[s] == g][:5]
    people += [s for s in several if genders[s] == "m"][:5]
    said: dict[str, list[kits.Said]] = {"enrolls": [], "f": [], "m": []}
    wavs = {}
    for speaker in people:
        for which, number, count in (("enrolls", 0, 2), (genders[speaker], 1, 4)):
            chapter = Path(chapters[speaker][number])
            sound, rate = soundfile.read(shared / "speech" / chapter)
            for i in range(count):
                name = f"{speaker}-{chapter.stem}-{i:04}"
                start = int((5 + i * 2 * SECONDS) * rate)
                wavs[name] = f"data/libri_dev/wav/{name}.wav"
                (root / wavs[name]).parent.mkdir(parents=True, exist_ok=True)
                soundfile.write(root / wavs[name], sound[start : start + int(SECONDS * rate)], rate)
                said[which].append(kits.Said(name, speaker, genders[speaker]))
    every = [each for some in said.values() for each in some]
    moved = {name: path.replace("libri_dev/", "libri_dev_mcadams/") for name, path in wavs.items()}
    for name, path in wavs.items():
        protect(root / path, root / moved[name], "mcadams:0.7", name=name)
    kits.lists(root, "libri_dev", said["enrolls"], {part: said[part] for part in "fm"})
    sets = {"libri_dev_enrolls": said["enrolls"]}
    sets |= {f"libri_dev_trials_{part}": said[part] for part in "fm"}
    for suffix, files in (("", wavs), ("_mcadams", moved)):
        for name, some in sets.items():
            folder = kits.data_folder(root, f"{name}{suffix}", some, files)
            voices, _, problems = collect(find(folder), features=["voice"])
            assert not problems
            vectors = {
                utterance: session["voice"].values.sum(axis=0)
                for voice in voices
                for utterance, session in zip(voice.session_names, voice.sessions, strict=True)
            }
            assert len(vectors) == len(some)
            for results, size in (("asv_orig", None), ("asv_anon_mcadams", 2)):
                kept = {key: value[:size] for key, value in vectors.items()}
                kits.cached(
                    root / "exp" / results, f"{name}{suffix}", some, kept, "enrolls" in name
                )
    assert len(every) == len(people) * 6
    return root


@pytest.mark.speech
def test_real_readers_are_told_apart_and_a_poor_network_is_marked(spoken):
    results = VoicePrivacyResults.at(spoken / "exp" / "asv_orig")
    rates = {entry.words: nearest(results.read(entry, "mine")) for entry in results.entries}
    for part in "fm":
        assert rates["libri_dev", part, "oo", ""] < 0.25
    mean = {s: np.mean([r for words, r in rates.items() if words[2] == s]) for s in ("oo", "oa")}
    assert mean["oo"] < mean["oa"]
    poor = VoicePrivacyResults.at(spoken / "exp" / "asv_anon_mcadams")
    marks = [poor.read(entry, "mine").warnings for entry in poor.choose(["aa"])]
    assert all("the attacker looks undertrained" in each[0] for each in marks)


@pytest.mark.speech
def test_their_folders_are_scored_from_anywhere(spoken, tmp_path, monkeypatch):
    """The paths in wav.scp are relative to the kit."""
    monkeypatch.chdir(tmp_path)
    corpus = find(spoken / "data" / "libri_dev_enrolls_mcadams")
    assert len(corpus.recordings) > 10
    assert all(each.path.is_file() for each in corpus.recordings)
