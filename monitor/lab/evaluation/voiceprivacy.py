"""Results of the VoicePrivacy Challenges of 2024 and 2026 as comparisons.

A folder of results (``exp/asv_orig``, ``exp/asv_anon_SUFFIX``) keeps embeddings under
``cosine_out/emb_xvect/SET/utt-level`` and ``spk-level``, one SET per data set. Each has ``id2idx``
(identifier, row), ``idx2spk`` (row, speaker) and ``speaker_vectors.npy``, converted from the pickle
``.pt``. The lists of trials are ``data/SET_trials_f/trials``. See docs/evaluate-input.md. It was
compared with the kits of 2024 (400de3a) and 2026 (e6810a4, of June, before the plan's version 2).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np

from monitor.corpus.trials import parse_folder
from monitor.errors import StoreError, UsageError
from monitor.lab.evaluation.comparisons import Comparisons, ScoreList, natural
from monitor.lab.evaluation.evaluating import evaluate
from monitor.lab.evaluation.family import EvaluationSettings
from monitor.lab.evaluation.input.files import Rows, array_at, read_map
from monitor.lab.evaluation.input.matching import EvaluationInput, check_list
from monitor.lab.evaluation.input.pairs import places
from monitor.lab.evaluation.srd import is_undertrained
from monitor.lab.evaluation.verification import eer
from monitor.maths.scores import near_one
from monitor.phrases import plural
from monitor.safe_text import printable
from monitor.types import AnyArray, BoolArray, FloatArray

SCENARIOS = ("oo", "oa", "aa")
"""Enrolment and trials, original or anonymised: unprotected, ignorant and informed attackers."""
_VECTORS, _PICKLED = "speaker_vectors.npy", "speaker_vectors.pt"
_CONVERT = (
    'python -c \'import glob, numpy, torch; [numpy.save(p[:-2] + "npy", torch.load(p, "cpu")) '
    f'for p in glob.glob("exp/**/{_PICKLED}", recursive=True)]\''
)
_CLEAR = ("asv_orig", "asv_ssl")
_NEAR = 1e-3
_WAV = ".wav"  # suffix of utterance names in some files of 2026


def read_trials(path: Path) -> tuple[tuple[str, str, bool], ...]:
    """Read ``SPEAKER UTTERANCE target|nontarget`` lines, the last as a bool."""
    targets: dict[tuple[str, str], bool] = {}
    rows, shape = Rows.from_file(path, blanks=True), "SPEAKER UTTERANCE target|nontarget"
    for number, (speaker, utterance, word) in rows.read(width=3, shape=shape):
        if word not in ("target", "nontarget"):
            raise rows.refuse(number, f"{printable(word)[:40]!r} is not target or nontarget")
        target = word == "target"
        if targets.setdefault((speaker, utterance.removesuffix(_WAV)), target) != target:
            raise rows.refuse(number, f"{utterance} is both target and nontarget")
    return tuple((*pair, target) for pair, target in targets.items())


@dataclass(frozen=True)
class SpeakerVectors:
    """Cached embeddings (n, d) of a data set: row of each identifier, speaker of each row."""

    label: str
    row: Mapping[str, int]
    values: FloatArray
    speakers: Mapping[int, str]

    @classmethod
    def from_folder(cls, folder: Path) -> SpeakerVectors:
        """Read a folder of ``id2idx`` and ``speaker_vectors.npy``."""
        label = f"{folder.parent.name}/{folder.name}"
        if not (folder / _VECTORS).exists() and (folder / _PICKLED).exists():
            raise StoreError(
                f"{label}: pickles such as {_PICKLED} are never loaded. Run {_CONVERT}"
            )
        stored = array_at(folder / _VECTORS)
        if stored.dtype.kind not in "fiu" or stored.ndim != 2 or not stored.size:
            raise UsageError(f"{label}: {_VECTORS} has shape {stored.shape}, not (n, d) numbers")
        with np.errstate(invalid="ignore"):  # values that are not finite are refused below
            values = np.asarray(stored, dtype=np.float64)
        row = {name.removesuffix(_WAV): _index(word, label, "id2idx")
               for name, word in read_map(folder / "id2idx").items()}  # fmt: skip
        beyond = [name for name, index in row.items() if index >= len(values)]
        if beyond or len(set(row.values())) < len(row):
            raise UsageError(
                f"{label}: id2idx has {len(row)} identifiers for {plural(len(values), 'embedding')}"
                + (f" ({beyond[0]}: row {row[beyond[0]]})" if beyond else ", two with the same row")
            )
        for name, index in row.items():
            if not np.isfinite(values[index]).all() or not values[index].any():
                fault = "all zero" if np.isfinite(values[index]).all() else "not finite"
                raise UsageError(f"{label}: the embedding of {name} is {fault}")
        speakers = {}
        if (folder / "idx2spk").is_file():
            listed = read_map(folder / "idx2spk")
            speakers = {_index(word, label, "idx2spk"): name for word, name in listed.items()}
        return cls(label, row, values, speakers)


def _has_vectors(folder: Path) -> bool:
    return any((folder / name).is_file() for name in (_VECTORS, _PICKLED))


def _index(word: str, label: str, file: str) -> int:
    if not (word.isdecimal() and word.isascii() and len(word) < 10):
        raise UsageError(f"{label}: {word!r} in {file} is not a row")
    return int(word)


@dataclass(frozen=True)
class VoicePrivacyEntry:
    """A list of trials in one scenario: ``libri_dev``, ``f``, ``aa``."""

    # dataset, part, scenario, anonymiser: words that select the entry
    dataset: str
    part: str  # empty if there is only one list
    scenario: str
    anonymiser: str  # suffix of the folders; empty if trials are original
    # enrolment, trials: folders of embeddings
    enrolment: Path
    trials: Path
    listed: Path | None  # the list of trials; None if it is missing

    @property
    def words(self) -> tuple[str, ...]:
        """Words that select the entry, some of them empty."""
        return self.dataset, self.part, self.scenario, self.anonymiser


@dataclass(frozen=True)
class VoicePrivacyResults:
    """A folder of results with embeddings read on demand."""

    path: Path
    data: Path | None
    entries: tuple[VoicePrivacyEntry, ...]

    @classmethod
    def find(cls, path: Path, data: Path | None = None) -> VoicePrivacyResults:
        """Find the results in a folder; lists of trials are in `data`, by default as in the kit."""
        root = next(filter(Path.is_dir, (path / "cosine_out" / "emb_xvect", path / "emb_xvect")),
                    path if path.name == "emb_xvect" else None)  # fmt: skip
        if root is None:
            plda = ", but not for PLDA" if (path / "plda_out").is_dir() else ""
            raise UsageError(
                f"{path.name} is a folder without cosine_out/emb_xvect, where VoicePrivacy's "
                f"evaluation keeps its embeddings{plda}: give such a folder, or a file of scores"
            )
        places_of_lists = (up / "data" for up in path.resolve().parents[:4])
        lists = data or next(filter(Path.is_dir, places_of_lists), None)
        folders = sorted(folder for folder in root.iterdir() if folder.is_dir())
        enrols = {(parsed.dataset, parsed.suffix): folder for folder in folders
                  if (parsed := parse_folder(folder.name)) and parsed.enrols}  # fmt: skip
        entries = []
        for folder in folders:
            parsed = parse_folder(folder.name)
            if parsed is None or parsed.enrols or not (folder / "utt-level").is_dir():
                continue
            name, subset, suffix, _ = parsed
            where = None if lists is None else lists / f"{name}_trials{'_' * bool(subset)}{subset}"
            listed = where / "trials" if where and (where / "trials").is_file() else None
            pairs = (("oo", ""),) if not suffix else (("oa", ""), ("aa", suffix))
            entries += [
                VoicePrivacyEntry(
                    name, subset, scenario, suffix.removeprefix("_"), enrols[name, enrol_suffix],
                    folder, listed,
                )
                for scenario, enrol_suffix in pairs
                if (name, enrol_suffix) in enrols
            ]  # fmt: skip
        if not entries:
            raise UsageError(
                f"{root.parent.name}/{root.name} has no SET_enrolls beside a SET_trials_...: "
                "nothing to compare"
            )
        order = {scenario: i for i, scenario in enumerate(SCENARIOS)}
        entries.sort(key=lambda e: (e.dataset, e.part, order[e.scenario], e.anonymiser))
        return cls(path, lists, tuple(entries))

    def choose(self, words: Sequence[str]) -> tuple[VoicePrivacyEntry, ...]:
        """Return entries that fit the words; words of one sort are alternatives."""
        requested = set(words)
        sorts = [requested & {entry.words[i] for entry in self.entries} for i in range(4)]
        entries = tuple(
            entry
            for entry in self.entries
            if all(not sort or word in sort for sort, word in zip(sorts, entry.words, strict=True))
        )
        if not entries or requested - set().union(*sorts):
            raise UsageError(
                f"{self.path.name} has no {' '.join(words)}; it has {self.describe_choices()}"
            )
        return entries

    def describe_choices(self) -> str:
        """List the words to choose by."""
        return " ".join(dict.fromkeys(w for entry in self.entries for w in entry.words if w))

    def read(
        self, entry: VoicePrivacyEntry, name: str, *, unmated: str = "count",
        clear: Path | None = None,
    ) -> EvaluationInput:  # fmt: skip
        """Compute the cosines of one list of trials, as the challenge does.

        `clear` has results of a network trained on clear speech, by default ``asv_orig`` or
        ``asv_ssl`` beside these. An attacker that recognises clear speech much worse is marked.
        """
        notes: list[str] = []
        listed = self._list_comparisons(entry, notes)
        scores = check_list(listed, name, notes=notes, unmated=unmated)
        warnings = [*self._compare_eer(entry, scores), *self.find_lost_numbers([entry])]
        messages = list(scores.notes)
        if entry.scenario != "oo" and self.path.name not in _CLEAR:
            mark, note = self._judge_training(entry, clear)
            warnings += [mark] * bool(mark)
            messages += [note] * bool(note)
        return EvaluationInput(scores.comparisons, tuple(messages), tuple(warnings))

    def find_lost_numbers(self, entries: Iterable[VoicePrivacyEntry]) -> Iterator[str]:
        """Warn of embeddings with only signs, which make an attacker look too weak.

        The kit of 2026 divided arrays of shape (1, 1, d) by their length along the second axis,
        until its change of 1 September.
        """
        folders = {folder for entry in entries for folder in (entry.enrolment, entry.trials)}
        for folder in sorted(folders):
            if not _has_vectors(folder / "utt-level"):
                continue
            vectors = SpeakerVectors.from_folder(folder / "utt-level")
            if vectors.values.shape[1] > 1 and np.allclose(abs(vectors.values), 1, atol=1e-5):
                yield (
                    f"{vectors.label}: all numbers are 1 or -1, as in VoicePrivacy's kit of 2026 "
                    "before September. The attacker looks too weak. Update the kit, and run its "
                    "evaluation again"
                )

    def list_eers(self, entry: VoicePrivacyEntry) -> Iterator[tuple[str, float]]:
        """Yield the gender and the EER (nearest threshold) of one list of trials.

        A list of both genders (``mixed`` in 2026) is also split with ``spk2gender``, into pairs of
        two women (f) and of two men (m). A third part (cross) has all target pairs, and the
        non-target pairs of a woman and a man.
        """
        listed = self._list_comparisons(entry, [])
        mated = np.asarray(listed.mated, np.bool_)
        yield entry.part or "all", eer(listed.scores[mated], listed.scores[~mated], "nearest")
        genders = self._read_genders(entry)
        spoken, enrolled = (
            np.array([genders.get(name, "") for name in names])[index]
            for names, index in (
                (listed.people, listed.spoken[listed.trial]),
                (listed.speakers, listed.speaker),
            )
        )
        yield from eers_by_gender(listed.scores, mated, spoken, enrolled)

    def _read_genders(self, entry: VoicePrivacyEntry) -> dict[str, str]:
        genders: dict[str, str] = {}
        for folder in (f"{entry.dataset}_enrolls", f"{entry.dataset}_trials_{entry.part}"):
            file = None if self.data is None else self.data / folder / "spk2gender"
            if file is not None and file.is_file():
                genders |= read_map(file)
        return genders

    def _compare_eer(self, entry: VoicePrivacyEntry, scores: EvaluationInput) -> Iterable[str]:
        folder = f"{entry.enrolment.name}-{entry.trials.name}"
        file = self.path / folder / "EER"
        if not file.is_file():
            return
        try:
            reported = float(Rows.from_file(file).first)
        except ValueError:
            raise UsageError(f"{folder}/EER contains no number") from None
        comparisons = scores.comparisons
        others = np.concatenate([block.ravel() for _, block in comparisons.non_mated_blocks()])
        measured = eer(comparisons.mated, others, "nearest")
        if not abs(measured - reported) < _NEAR:
            yield (
                f"{folder}/EER contains {100 * reported:.3f} %, but these embeddings and lists "
                f"give {100 * measured:.3f} %: they are from different runs"
            )

    def _judge_training(self, entry: VoicePrivacyEntry, clear: Path | None) -> tuple[str, str]:
        """Return a warning if the attacker looks undertrained, or a note."""
        neighbours = [self.path.parent / name for name in _CLEAR]
        reference = clear or next(filter(Path.is_dir, neighbours), None)
        bits = self._clear_bits(entry)
        if reference is None or bits is None:
            lacks = "its embeddings of clear speech" if bits is None else "results of asv_orig"
            return "", (
                f"Whether the attacker is well trained is unknown without {lacks} (clear-results "
                "= FOLDER in --config FILE)."
            )
        reference_bits = VoicePrivacyResults.find(reference, self.data)._clear_bits(entry)
        if reference_bits is None:
            return "", (
                f"Whether the attacker is well trained is unknown: {reference.name} has no clear "
                f"{entry.dataset}."
            )
        dataset = " ".join(filter(None, (entry.dataset, entry.part)))
        sentence = f"its network extracts {bits:.2f} bits (MeanD) from clear {dataset}, "
        sentence += f"{reference.name} {reference_bits:.2f}"
        if is_undertrained(bits, reference_bits):
            return (
                f"the attacker looks undertrained: {sentence}. Its figures do not measure the "
                "anonymiser. Train it longer, or on more speakers"
            ), ""
        return "", f"The attacker is trained: {sentence}."

    def _clear_bits(self, entry: VoicePrivacyEntry) -> float | None:
        """Compute MeanD of a list's clear speech, all its trials against all its speakers."""
        same = (entry.dataset, entry.part, "oo")
        entries = [e for e in self.entries if (e.dataset, e.part, e.scenario) == same]
        if not entries:
            return None
        listed = self._list_comparisons(entries[0], [], complete=True)
        comparisons = Comparisons.from_scores(listed)
        if comparisons.matrix is None:
            return None
        report = evaluate(comparisons.matrix, settings=EvaluationSettings(0, only=("srd",)))
        return report["srd.mean_bits_model"].value

    def _list_comparisons(
        self, entry: VoicePrivacyEntry, notes: list[str], complete: bool = False
    ) -> ScoreList:
        """Compute the listed comparisons, or all of their trials with all of their speakers."""
        trials = SpeakerVectors.from_folder(entry.trials / "utt-level")
        enrolled = self._read_templates(entry.enrolment, notes)
        if trials.values.shape[1] != enrolled.values.shape[1]:
            raise UsageError(
                f"{trials.label} has {trials.values.shape[1]} dimensions and {enrolled.label} "
                f"{enrolled.values.shape[1]}: use one network for both"
            )
        if entry.listed is None:
            raise UsageError(
                f"{entry.trials.name} has no list of trials: give the folder of lists (--data)"
            )
        listed = read_trials(entry.listed)
        missing = [pair for pair in listed
                   if pair[0] not in enrolled.row or pair[1] not in trials.row]  # fmt: skip
        if missing:
            gone = set(missing)
            listed = tuple(pair for pair in listed if pair not in gone)
            notes.append(
                f"{len(missing)} of {len(missing) + len(listed)} listed pairs have no embedding "
                f"(first: {missing[0][0]} {missing[0][1]}) and are excluded"
            )
        if not listed:
            raise UsageError(
                f"no listed pair of {entry.trials.name} has embeddings; check the lists"
            )
        speakers = tuple(sorted({speaker for speaker, _, _ in listed}, key=natural))
        if complete:
            speaker_of = {utterance: speaker for speaker, utterance, target in listed if target}
            listed = tuple(
                (name, utterance, name == who)
                for utterance, who in speaker_of.items()
                for name in speakers
            )
        utterances = tuple(dict.fromkeys(utterance for _, utterance, _ in listed))
        speaker = places([name for name, _, _ in listed], speakers)
        trial = places([name for _, name, _ in listed], utterances)
        mated = np.array([target for _, _, target in listed])
        rows = np.array([trials.row[name] for name in utterances])
        templates = enrolled.values[np.array([enrolled.row[name] for name in speakers])]
        tests, templates = (near_one(vectors) for vectors in (trials.values[rows], templates))
        tests = tests / np.linalg.norm(tests, axis=1, keepdims=True)
        cosines = tests @ (templates / np.linalg.norm(templates, axis=1, keepdims=True)).T
        # speakers by target pairs, otherwise by utt2spk, otherwise by idx2spk
        spoken = {name: trials.speakers.get(row, name) for name, row in trials.row.items()}
        spoken |= self._utt2spk(entry.trials.name)
        spoken |= {utterance: who for who, utterance, target in listed if target}
        names = [spoken.get(name, name) for name in utterances]
        people = tuple(dict.fromkeys(names))
        return ScoreList(
            cosines[trial, speaker], mated, trial, speaker, places(names, people), speakers, people,
            utterances,
        )  # fmt: skip

    def _utt2spk(self, dataset: str) -> dict[str, str]:
        """Read the speakers of a data folder, or of the clear folder that belongs to it."""
        parsed = parse_folder(dataset)
        names = (dataset, dataset.removesuffix(parsed.suffix) if parsed else dataset)
        files = [] if self.data is None else [self.data / name / "utt2spk" for name in names]
        file = next(filter(Path.is_file, files), None)
        words = {} if file is None else read_map(file)
        return {name.removesuffix(_WAV): speaker for name, speaker in words.items()}

    def _read_templates(self, folder: Path, notes: list[str]) -> SpeakerVectors:
        """Read each speaker's vector, or average the utterances unnormalised, as the kit does."""
        by_utterance = None
        if _has_vectors(folder / "utt-level"):
            by_utterance = SpeakerVectors.from_folder(folder / "utt-level")
        speaker_folder = folder / "spk-level"
        means = None if by_utterance is None else self._average(folder, by_utterance)
        if not _has_vectors(speaker_folder):
            if means is None:
                raise UsageError(f"{folder.name} has neither spk-level nor utt-level embeddings")
            return means
        vectors = SpeakerVectors.from_folder(speaker_folder)
        if means is not None:
            wrong = [
                name
                for name, row in vectors.row.items()
                if (at := means.row.get(name)) is None
                or not np.allclose(vectors.values[row], means.values[at], rtol=1e-3, atol=1e-4)
            ]
            if wrong:
                notes.append(
                    f"{vectors.label}: the vectors of {len(wrong)} of "
                    f"{plural(len(vectors.row), 'speaker')} (such as {wrong[0]}) are not the means "
                    "of their utterances (the scripts of 2024 mix up speakers). They are used "
                    "unchanged. Delete spk-level to compute the means"
                )
        return vectors

    def _average(self, folder: Path, vectors: SpeakerVectors) -> SpeakerVectors:
        spoken = self._utt2spk(folder.name)
        rows: dict[str, list[int]] = {}
        for name, row in vectors.row.items():
            speaker = spoken.get(name) or vectors.speakers.get(row)
            if speaker is None:
                raise UsageError(f"{vectors.label}: {name} has no speaker in utt2spk or idx2spk")
            rows.setdefault(speaker, []).append(row)
        values = np.stack([vectors.values[row].mean(axis=0) for row in rows.values()])
        return SpeakerVectors(
            folder.name, {name: i for i, name in enumerate(rows)}, values, dict(enumerate(rows))
        )


def eers_by_gender(
    scores: FloatArray, mated: BoolArray, spoken: AnyArray, enrolled: AnyArray
) -> Iterator[tuple[str, float]]:
    """Yield the EERs of women (f), men (m) and cross-gender pairs, if there are both genders.

    `spoken` and `enrolled` have the gender of both sides of each pair, shape (n,). The cross-gender
    part has all target pairs, and the non-target pairs of a woman and a man.
    """
    if not {"f", "m"} <= set(np.unique(spoken)) | set(np.unique(enrolled)):
        return
    is_cross = (spoken != enrolled) & (spoken != "") & (enrolled != "")
    parts = {kind: (spoken == kind) & (enrolled == kind) for kind in "fm"}
    for name, selection in (*parts.items(), ("cross", mated | is_cross)):
        if (selection & mated).any() and (selection & ~mated).any():
            yield name, eer(scores[selection & mated], scores[selection & ~mated], "nearest")


EVALUATOR, TRAINED = "ASV_eval", "ASV_eval^anon"
"""The challenge's names of a network trained on clear speech, and on anonymised speech."""
_SIDES = {"o": "original", "a": "anon"}


@dataclass(frozen=True, slots=True)
class ChallengeRow:
    """A line of the challenge's results; ``sides`` has "o" or "a" for enrolment and trial."""

    network: str
    dataset: str
    gender: str
    sides: str
    rate: float


def format_results(sources: Iterable[tuple[VoicePrivacyResults, VoicePrivacyEntry]]) -> str:
    """Format EERs in percent as the challenge's files of results do, with a section per network."""
    return format_rows(
        ChallengeRow(
            EVALUATOR if results.path.name in _CLEAR else TRAINED,
            entry.dataset, gender, entry.scenario, rate,
        )
        for results, entry in sources
        for gender, rate in results.list_eers(entry)
    )  # fmt: skip


def format_rows(
    lines: Iterable[ChallengeRow],
    word_errors: Mapping[tuple[str, str], float] = MappingProxyType({}),
) -> str:
    """Format EERs in percent, with a section per network.

    Word errors, by data set and side ("o" or "a"), have their own section.
    """
    rows: dict[str, list[tuple[str, ...]]] = {}
    for line in lines:
        dataset, _, split = line.dataset.rpartition("_")
        sides = [_SIDES[side] for side in line.sides]
        rows.setdefault(line.network, []).append(
            (dataset, split, line.gender, *sides, f"{100 * line.rate:.3f}")
        )
    heading = ("dataset", "split", "gender", "enrollment", "trial", "EER")
    sections = [_format_section(network, heading, cells) for network, cells in rows.items()]
    if word_errors:
        cells = [(*name.rpartition("_")[::2], _SIDES[side], f"{100 * rate:.3f}")
                 for (name, side), rate in word_errors.items()]  # fmt: skip
        sections.append(_format_section("ASR", ("dataset", "split", "asr", "WER"), cells))
    return "\n".join(sections)


def _format_section(title: str, heading: tuple[str, ...], cells: Sequence[tuple[str, ...]]) -> str:
    table = (heading, *sorted(cells, key=lambda row: row[:2]))
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = (" ".join(map(str.rjust, row, widths)) for row in table)
    return "\n".join((f"---- {title} results ----", *lines)) + "\n"
