"""Reads what the evaluation of the VoicePrivacy Challenges of 2024 and 2026 leaves behind.

A folder of results (``exp/asv_orig``, ``exp/asv_anon_SUFFIX``) keeps the embeddings of each data
set under ``cosine_out/emb_xvect/SET/utt-level`` and ``spk-level``: ``id2idx`` (an identifier and
its row), ``idx2spk`` (a row and its speaker), ``spk2gender`` and ``speaker_vectors.npy``, converted
from the pickle ``.pt``, which is not read. The lists of trials lie in
``data/SET_trials_f/trials``. docs/evaluate-input.md shows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from monitor.errors import StoreError, UsageError
from monitor.lab.evaluation.input.files import array_at, kind_of, natural, text_chunks
from monitor.lab.evaluation.input.scores import EvaluationInput, finished_list
from monitor.lab.evaluation.scores.comparisons import Comparisons, ScoreList
from monitor.maths.lid import near_one
from monitor.phrases import plural
from monitor.types import FloatArray

SCENARIOS = ("oo", "oa", "aa")
"""Enrolment and trials, original or anonymised: unprotected, ignorant and informed attackers."""
_VECTORS, _PICKLED = "speaker_vectors.npy", "speaker_vectors.pt"
_CONVERT = (
    'python -c \'import glob, numpy, torch; [numpy.save(p[:-2] + "npy", torch.load(p, "cpu")) '
    f'for p in glob.glob("exp/**/{_PICKLED}", recursive=True)]\''
)
_ENROLS = re.compile(r"(?P<set>.+)_enrolls(?P<suffix>_.+)?")
_TRIALS = re.compile(
    r"(?P<set>.+)_trials(?:_(?P<part>all|mixed|[fm](?:_(?:all|common))?))?(?P<suffix>_.+)?"
)
_CLEAR = ("asv_orig", "asv_ssl")
_NEAR = 1e-3


# ------------------------------------------------------------------------------------- Kaldi files


def read_map(path: Path) -> dict[str, str]:
    """A name and a word a line, as ``utt2spk``.

    Raises:
        UsageError: a line is anything else, or a name comes twice with two words.
        StoreError: it cannot be read.
    """
    if kind_of(path) != "text":
        raise UsageError(f"{path.name} is no text")
    found: dict[str, str] = {}
    lines = (line for chunk in text_chunks(path) for line in chunk)
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words:
            continue
        if len(words) != 2:
            raise UsageError(f"{path.name} line {number}: is not a name and a word")
        if found.setdefault(*words) != words[1]:
            raise UsageError(f"{path.name} line {number}: {words[0]} is listed twice")
    if not found:
        raise UsageError(f"{path.name} is empty")
    return found


def read_trials(path: Path) -> tuple[tuple[str, str, bool], ...]:
    """``SPEAKER UTTERANCE target|nontarget`` lines: speaker, utterance, whether it is a target.

    Raises:
        UsageError: a line is anything else, or a pair is both.
        StoreError: it cannot be read.
    """
    found: dict[tuple[str, str], bool] = {}
    lines = (line for chunk in text_chunks(path) for line in chunk)
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words:
            continue
        if len(words) != 3 or words[2] not in ("target", "nontarget"):
            raise UsageError(
                f"{path.name} line {number}: is not SPEAKER UTTERANCE target|nontarget"
            )
        target = words[2] == "target"
        if found.setdefault((words[0], words[1]), target) != target:
            raise UsageError(f"{path.name} line {number}: {words[1]} is a target and is none")
    if not found:
        raise UsageError(f"{path.name} is empty")
    return tuple((*pair, target) for pair, target in found.items())


# ----------------------------------------------------------------------------------------- vectors


@dataclass(frozen=True)
class SpeakerVectors:
    """The cached embeddings of a data set.

    Attributes:
        label: what messages call them.
        row: of each identifier, an utterance or a speaker.
        values: shape (n, d).
        speakers: of the rows that have one.
    """

    label: str
    row: Mapping[str, int]
    values: FloatArray
    speakers: Mapping[int, str]

    @classmethod
    def at(cls, folder: Path) -> SpeakerVectors:
        """Read a folder of ``id2idx`` and ``speaker_vectors.npy``.

        Raises:
            UsageError: they do not fit together, or an embedding is not finite.
            StoreError: a file cannot be read.
        """
        label = f"{folder.parent.name}/{folder.name}"
        if not (folder / _VECTORS).exists() and (folder / _PICKLED).exists():
            raise StoreError(f"{label}: {_PICKLED} is a pickle, which is never loaded: {_CONVERT}")
        stored = array_at(folder / _VECTORS)
        if stored.dtype.kind not in "fiu" or stored.ndim != 2 or not stored.size:
            raise UsageError(f"{label}: {_VECTORS} has shape {stored.shape}, not (n, d) numbers")
        values = np.asarray(stored, dtype=np.float64)
        row = {name: _index(word, label, "id2idx") for name, word in
               read_map(folder / "id2idx").items()}  # fmt: skip
        beyond = [name for name, index in row.items() if index >= len(values)]
        if beyond or len(set(row.values())) < len(row):
            raise UsageError(
                f"{label}: id2idx has {len(row)} identifiers of {plural(len(values), 'embedding')}"
                + (f" ({beyond[0]}: row {row[beyond[0]]})" if beyond else ", two of one row")
            )
        for name, index in row.items():
            if not np.isfinite(values[index]).all() or not values[index].any():
                what = "all zero" if np.isfinite(values[index]).all() else "not finite"
                raise UsageError(f"{label}: the embedding of {name} is {what}")
        speakers = {}
        if (folder / "idx2spk").is_file():
            listed = read_map(folder / "idx2spk")
            speakers = {_index(word, label, "idx2spk"): name for word, name in listed.items()}
        return cls(label, row, values, speakers)

    def of(self, name: str) -> int | None:
        """The row of an identifier; the kit of 2026 writes some with and some without ``.wav``."""
        for each in (name, name.removesuffix(".wav"), f"{name}.wav"):
            if each in self.row:
                return self.row[each]
        return None


def _has_vectors(folder: Path) -> bool:
    return any((folder / name).is_file() for name in (_VECTORS, _PICKLED))


def _index(word: str, label: str, file: str) -> int:
    if not (word.isdecimal() and word.isascii() and len(word) < 10):
        raise UsageError(f"{label}: {word!r} in {file} is no row")
    return int(word)


# ----------------------------------------------------------------------------------------- results


@dataclass(frozen=True)
class VoicePrivacyEntry:
    """A list of trials in one scenario: ``libri_dev``, ``f``, ``aa``.

    Attributes:
        dataset, part, scenario, anonymiser: what it is chosen by; `part` is empty where there is
            but one list, `anonymiser` (the suffix of the folders) where trials are original.
        enrolment, trials: folders of embeddings.
        listed: the list of trials; None where it is missing.
    """

    dataset: str
    part: str
    scenario: str
    anonymiser: str
    enrolment: Path
    trials: Path
    listed: Path | None

    @property
    def words(self) -> tuple[str, ...]:
        """What it is chosen by; empty where there is nothing."""
        return self.dataset, self.part, self.scenario, self.anonymiser


@dataclass(frozen=True)
class VoicePrivacyResults:
    """A folder of results, whose embeddings are read when they are asked for."""

    path: Path
    data: Path | None
    entries: tuple[VoicePrivacyEntry, ...]

    @classmethod
    def at(cls, path: Path, data: Path | None = None) -> VoicePrivacyResults:
        """The results there; the lists of trials are below `data`, by default where the kit has it.

        Raises:
            UsageError: there are none.
        """
        root = next(filter(Path.is_dir, (path / "cosine_out" / "emb_xvect", path / "emb_xvect")),
                    path if path.name == "emb_xvect" else None)  # fmt: skip
        if root is None:
            plda = "; PLDA's are not" if (path / "plda_out").is_dir() else ""
            raise UsageError(
                f"{path.name} is a folder without cosine_out/emb_xvect, where VoicePrivacy's "
                f"evaluation keeps its embeddings{plda}: give such a folder, or a file of scores"
            )
        lists = data or next(
            filter(Path.is_dir, (up / "data" for up in path.resolve().parents[:4])), None
        )
        there = sorted(each for each in root.iterdir() if each.is_dir())
        enrols = {(m["set"], m["suffix"] or ""): each for each in there
                  if (m := _ENROLS.fullmatch(each.name))}  # fmt: skip
        entries = []
        for each in there:
            found = _TRIALS.fullmatch(each.name)
            if found is None or not (each / "utt-level").is_dir():
                continue
            name, part, suffix = found["set"], found["part"] or "", found["suffix"] or ""
            where = None if lists is None else lists / f"{name}_trials{'_' * bool(part)}{part}"
            listed = where / "trials" if where and (where / "trials").is_file() else None
            pairs = (("oo", ""),) if not suffix else (("oa", ""), ("aa", suffix))
            entries += [
                VoicePrivacyEntry(
                    name, part, scenario, suffix.removeprefix("_"), enrols[name, whose], each,
                    listed,
                )
                for scenario, whose in pairs
                if (name, whose) in enrols
            ]  # fmt: skip
        if not entries:
            raise UsageError(
                f"{root.parent.name}/{root.name} has no SET_enrolls beside a SET_trials_...: "
                "nothing to compare"
            )
        order = {scenario: i for i, scenario in enumerate(SCENARIOS)}
        entries.sort(key=lambda e: (e.dataset, e.part, order[e.scenario], e.anonymiser))
        return cls(path, lists, tuple(entries))

    def chosen(self, words: Sequence[str]) -> tuple[VoicePrivacyEntry, ...]:
        """Those that fit the words: data sets, parts and scenarios; of one sort alternatives.

        Raises:
            UsageError: none does.
        """
        asked = set(words)
        sorts = [asked & {entry.words[i] for entry in self.entries} for i in range(4)]
        found = tuple(
            entry
            for entry in self.entries
            if all(not sort or word in sort for sort, word in zip(sorts, entry.words, strict=True))
        )
        if not found or asked - set().union(*sorts):
            raise UsageError(f"{self.path.name} has no {' '.join(words)}; it has {self.listed()}")
        return found

    def listed(self) -> str:
        """What can be chosen, in words."""
        return " ".join(dict.fromkeys(w for entry in self.entries for w in entry.words if w))

    def read(
        self, entry: VoicePrivacyEntry, name: str, *, unmated: str = "count",
        clear: Path | None = None,
    ) -> EvaluationInput:  # fmt: skip
        """The cosines of one list of trials, as the challenge has them.

        Args:
            entry: which list and scenario.
            name: of the system.
            unmated: impostor trials, as of `read_scores`.
            clear: results of a network trained on clear speech; by default ``asv_orig`` or
                ``asv_ssl`` beside these. Where trials are anonymised, an attacker whose network
                tells too little of clear speech is marked.

        Raises:
            UsageError: files do not fit together.
            StoreError: a file cannot be read.
        """
        notes: list[str] = []
        listed = self._compared(entry, notes)
        made = finished_list(listed, name, notes=notes, unmated=unmated)
        warnings = [*self._told(entry, made)]
        said = list(made.notes)
        if entry.scenario != "oo" and self.path.name not in _CLEAR:
            mark, note = self._trained(entry, clear)
            warnings += [mark] * bool(mark)
            said += [note] * bool(note)
        return EvaluationInput(made.comparisons, tuple(said), tuple(warnings))

    def _told(self, entry: VoicePrivacyEntry, made: EvaluationInput) -> Iterable[str]:
        """Where the challenge's own EER is another."""
        from monitor.lab.evaluation.verification import eer

        beside = f"{entry.enrolment.name}-{entry.trials.name}"
        file = self.path / beside / "EER"
        if not file.is_file():
            return
        try:
            theirs = float(next(iter(text_chunks(file)))[0])
        except (ValueError, StopIteration):
            raise UsageError(f"{beside}/EER holds no number") from None
        every = made.comparisons
        others = np.concatenate([block.ravel() for _, block in every.non_mated_blocks()])
        mine = eer(every.mated, others, "nearest")
        if not abs(mine - theirs) < _NEAR:
            yield (
                f"{beside}/EER reads {100 * theirs:.3f} %, these embeddings and lists "
                f"{100 * mine:.3f} %: they are not of one run"
            )

    def _trained(self, entry: VoicePrivacyEntry, clear: Path | None) -> tuple[str, str]:
        """A mark where the attacker looks undertrained; else a note on what is known of it."""
        from monitor.lab.evaluation.srd import undertrained

        beside = [self.path.parent / each for each in _CLEAR]
        reference = clear or next(filter(Path.is_dir, beside), None)
        own = self._clear_bits(entry)
        if reference is None or own is None:
            lacks = "its embeddings of clear speech" if own is None else "results of asv_orig"
            return "", (
                f"Whether the attacker is trained well enough cannot be told without {lacks} "
                "(--clear-results)."
            )
        theirs = VoicePrivacyResults.at(reference, self.data)._clear_bits(entry)
        if theirs is None:
            return "", (
                f"Whether the attacker is trained well enough cannot be told: {reference.name} "
                f"has no clear {entry.dataset}."
            )
        which = " ".join(filter(None, (entry.dataset, entry.part)))
        told = f"of clear {which} its network tells {own:.2f} bits (MeanD), "
        told += f"{reference.name} {theirs:.2f}"
        if undertrained(own, theirs):
            return (
                f"the attacker looks undertrained: {told}: its figures are no measure of the "
                "anonymiser; train it longer, or on more speakers"
            ), ""
        return "", f"The attacker is trained: {told}."

    def _clear_bits(self, entry: VoicePrivacyEntry) -> float | None:
        """MeanD of the clear side of a list, all its trials against all its speakers."""
        from monitor.lab.evaluation.evaluating import evaluate

        same = (entry.dataset, entry.part, "oo")
        found = [e for e in self.entries if (e.dataset, e.part, e.scenario) == same]
        if not found:
            return None
        listed = self._compared(found[0], [], whole=True)
        every = Comparisons.of(listed)
        if every.matrix is None:
            return None
        report = evaluate(every.matrix, replicates=0, only=("srd",))
        return report["srd.mean_bits_model"].value

    def _compared(
        self, entry: VoicePrivacyEntry, notes: list[str], whole: bool = False
    ) -> ScoreList:
        """The listed comparisons, or all of their trials with all of their speakers."""
        trials = SpeakerVectors.at(entry.trials / "utt-level")
        enrolled = self._enrolled(entry.enrolment, notes)
        if trials.values.shape[1] != enrolled.values.shape[1]:
            raise UsageError(
                f"{trials.label} has {trials.values.shape[1]} dimensions and {enrolled.label} "
                f"{enrolled.values.shape[1]}; take both from one network"
            )
        if entry.listed is not None:
            listed = read_trials(entry.listed)
        else:
            listed = _all_pairs(trials, enrolled)
            notes.append(
                f"No list of trials of {entry.dataset}: every utterance is compared with every "
                "speaker (--data FOLDER says where the lists are)"
            )
        missing = [pair for pair in listed
                   if enrolled.of(pair[0]) is None or trials.of(pair[1]) is None]  # fmt: skip
        if missing:
            gone = set(missing)
            listed = tuple(pair for pair in listed if pair not in gone)
            notes.append(
                f"{len(missing)} of {len(missing) + len(listed)} listed pairs have no embedding "
                f"(first: {missing[0][0]} {missing[0][1]}): left out"
            )
        if not listed:
            raise UsageError(f"{entry.trials.name}: no listed pair has embeddings; check the lists")
        if whole:
            listed = _completed(listed)
        speakers = tuple(sorted({speaker for speaker, _, _ in listed}, key=natural))
        heard = tuple(dict.fromkeys(utterance for _, utterance, _ in listed))
        column = {each: i for i, each in enumerate(speakers)}
        place = {each: i for i, each in enumerate(heard)}
        speaker = np.array([column[each] for each, _, _ in listed], dtype=np.intp)
        trial = np.array([place[each] for _, each, _ in listed], dtype=np.intp)
        mated = np.array([target for _, _, target in listed])
        rows = np.array([trials.of(each) for each in heard])
        own = np.array([enrolled.of(each) for each in speakers])
        cosines = _cosines(trials.values[rows], enrolled.values[own])
        spoken = self._spoken(entry, trials, listed)
        names = [spoken.get(each, each) for each in heard]
        people = tuple(dict.fromkeys(names))
        whose = {each: i for i, each in enumerate(people)}
        return ScoreList(
            cosines[trial, speaker], mated, trial, speaker,
            np.array([whose[each] for each in names], dtype=np.intp), speakers, people, heard,
        )  # fmt: skip

    def _spoken(
        self, entry: VoicePrivacyEntry, trials: SpeakerVectors,
        listed: Iterable[tuple[str, str, bool]],
    ) -> dict[str, str]:  # fmt: skip
        """Whose each utterance is: of target pairs, else as ``utt2spk``, else as ``idx2spk``."""
        found = {name: trials.speakers.get(row, name) for name, row in trials.row.items()}
        found |= self._utt2spk(entry.trials.name)
        return found | {utterance: who for who, utterance, target in listed if target}

    def _utt2spk(self, dataset: str) -> dict[str, str]:
        """Of the data folder of that name, or of its clear one."""
        match = _ENROLS.fullmatch(dataset) or _TRIALS.fullmatch(dataset)
        suffix = match["suffix"] or "" if match else ""
        names = (dataset, dataset.removesuffix(suffix) if suffix else dataset)
        files = [] if self.data is None else [self.data / name / "utt2spk" for name in names]
        file = next(filter(Path.is_file, files), None)
        return {} if file is None else read_map(file)

    def _enrolled(self, folder: Path, notes: list[str]) -> SpeakerVectors:
        """A vector of each speaker: the mean of the utterances as they are, as the kit has it."""
        by_utterance = None
        if _has_vectors(folder / "utt-level"):
            by_utterance = SpeakerVectors.at(folder / "utt-level")
        kept = folder / "spk-level"
        means = None if by_utterance is None else self._means(folder, by_utterance)
        if not _has_vectors(kept):
            if means is None:
                raise UsageError(f"{folder.name} has neither spk-level nor utt-level embeddings")
            return means
        found = SpeakerVectors.at(kept)
        if means is not None:
            wrong = [
                name
                for name, row in found.row.items()
                if (at := means.of(name)) is None
                or not np.allclose(found.values[row], means.values[at], rtol=1e-3, atol=1e-4)
            ]
            if wrong:
                notes.append(
                    f"{found.label}: the vectors of {len(wrong)} of "
                    f"{plural(len(found.row), 'speaker')} (first: {wrong[0]}) are not the means of "
                    "their utterances (the scripts of 2024 mix speakers up where they read "
                    "embeddings back): they are taken as they are; remove spk-level to have it "
                    "made anew"
                )
        return found

    def _means(self, folder: Path, found: SpeakerVectors) -> SpeakerVectors:
        spoken = self._utt2spk(folder.name)
        rows: dict[str, list[int]] = {}
        for name, row in found.row.items():
            speaker = spoken.get(name) or spoken.get(name.removesuffix(".wav"))
            speaker = speaker or found.speakers.get(row)
            if speaker is None:
                raise UsageError(f"{found.label}: nobody says whose {name} is (utt2spk, idx2spk)")
            rows.setdefault(speaker, []).append(row)
        values = np.stack([found.values[each].mean(axis=0) for each in rows.values()])
        return SpeakerVectors(
            folder.name, {name: i for i, name in enumerate(rows)}, values, dict(enumerate(rows))
        )


def _cosines(trials: FloatArray, enrolled: FloatArray) -> FloatArray:
    """Shape (T, N)."""
    one, two = (near_one(each) for each in (trials, enrolled))
    one = one / np.linalg.norm(one, axis=1, keepdims=True)
    return np.asarray(one @ (two / np.linalg.norm(two, axis=1, keepdims=True)).T)


def _all_pairs(
    trials: SpeakerVectors, enrolled: SpeakerVectors
) -> tuple[tuple[str, str, bool], ...]:
    return tuple(
        (speaker, name, trials.speakers.get(row) == speaker)
        for name, row in trials.row.items()
        for speaker in enrolled.row
    )


def _completed(listed: Sequence[tuple[str, str, bool]]) -> tuple[tuple[str, str, bool], ...]:
    """Every trial that has a target with every speaker of the list."""
    own = {utterance: speaker for speaker, utterance, target in listed if target}
    speakers = dict.fromkeys(speaker for speaker, _, _ in listed)
    return tuple((each, utterance, each == who) for utterance, who in own.items()
                 for each in speakers)  # fmt: skip
