"""Folders as the scripts of the VoicePrivacy Challenges of 2024 and 2026 leave them."""

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from monitor.types import FloatArray


def array_file(values: FloatArray) -> bytes:
    """What ``numpy.save`` writes."""
    file = io.BytesIO()
    np.save(file, values)
    return file.getvalue()


def write_map(path: Path, values: Mapping[str, object]) -> None:
    """A key and its value a line, in the order of the keys."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{key} {values[key]}\n" for key in sorted(values)))


@dataclass(frozen=True)
class Said:
    """An utterance."""

    name: str
    speaker: str
    gender: str


def data_folder(root: Path, name: str, said: Sequence[Said]) -> Path:
    """``wav.scp``, ``utt2spk``, ``spk2utt`` and ``spk2gender`` of a data set below ``data``."""
    folder = root / "data" / name
    write_map(folder / "utt2spk", {each.name: each.speaker for each in said})
    write_map(folder / "spk2gender", {each.speaker: each.gender for each in said})
    spoken: dict[str, list[str]] = {}
    for each in said:
        spoken.setdefault(each.speaker, []).append(each.name)
    write_map(folder / "spk2utt", {speaker: " ".join(own) for speaker, own in spoken.items()})
    wavs = {each.name: f"data/{name}/wav/{each.name}.wav" for each in said}
    write_map(folder / "wav.scp", wavs)
    return folder


def lists(
    root: Path, dataset: str, enrolled: Sequence[Said], trials: Mapping[str, Sequence[Said]]
) -> None:
    """The clear data folders with ``enrolls`` and ``trials``: those of f with f, of m with m."""
    folder = data_folder(root, f"{dataset}_enrolls", enrolled)
    (folder / "enrolls").write_text("".join(f"{each.name}\n" for each in enrolled))
    for part, said in trials.items():
        folder = data_folder(root, f"{dataset}_trials_{part}", said)
        speakers = sorted({e.speaker for e in enrolled if part in (e.gender, "mixed")})
        lines = [
            f"{speaker} {each.name} {'target' if speaker == each.speaker else 'nontarget'}\n"
            for speaker in speakers
            for each in said
        ]
        (folder / "trials").write_text("".join(lines))


def cached(
    results: Path, dataset: str, said: Sequence[Said], vectors: Mapping[str, FloatArray],
    means: bool = False,
) -> Path:  # fmt: skip
    """The embeddings of a data set; where it enrols, those of its speakers beside them."""
    folder = results / "cosine_out" / "emb_xvect" / dataset
    _kept(folder / "utt-level", [(e.name, e) for e in said], [vectors[e.name] for e in said])
    if means:
        own: dict[str, list[Said]] = {}
        for each in said:
            own.setdefault(each.speaker, []).append(each)
        _kept(
            folder / "spk-level",
            [(speaker, some[0]) for speaker, some in own.items()],
            [np.mean([vectors[e.name] for e in some], axis=0) for some in own.values()],
        )
    return folder


def _kept(folder: Path, named: Sequence[tuple[str, Said]], rows: Iterable[FloatArray]) -> None:
    write_map(folder / "id2idx", {name: i for i, (name, _) in enumerate(named)})
    speakers = (f"{i} {each.speaker}\n" for i, (_, each) in enumerate(named))
    (folder / "idx2spk").write_text("".join(speakers))
    write_map(folder / "spk2gender", {each.speaker: each.gender for _, each in named})
    np.save(folder / "speaker_vectors.npy", np.stack(list(rows)).astype(np.float32))


def drawn(
    said: Iterable[Said], spread: float, size: int = 16, seed: int = 0
) -> dict[str, FloatArray]:
    """Vectors of utterances about those of their speakers; the speakers are the same each time."""
    random = np.random.default_rng(seed)
    return {
        each.name: np.random.default_rng(int(each.speaker)).standard_normal(size)
        + spread * random.standard_normal(size)
        for each in said
    }


def readers(women: int = 6, men: int = 6, own: int = 5) -> tuple[list[Said], list[Said]]:
    """Three enrolled utterances of each, and so many trials."""
    people = [(str(1000 + i), "f" if i < women else "m") for i in range(women + men)]
    enrolled = [Said(f"{s}-1-{i:04}", s, g) for s, g in people for i in range(3)]
    return enrolled, [Said(f"{s}-2-{i:04}", s, g) for s, g in people for i in range(own)]


def kit(root: Path, own: float = 1.0, dataset: str = "libri_dev") -> Path:
    """A kit with drawn embeddings: ``exp/asv_orig`` and ``exp/asv_anon_mcadams``.

    `own` is how much utterances of one speaker differ for the attacker's network, on clear speech.
    """
    enrolled, trials = readers()
    parts = {part: [e for e in trials if e.gender == part] for part in "fm"}
    lists(root, dataset, enrolled, parts)
    for suffix in ("", "_mcadams"):
        for name, spread, seed in (("asv_orig", 1.0, 1), ("asv_anon_mcadams", own, 2)):
            results = root / "exp" / name
            spread += 2.0 * bool(suffix)
            sets = {f"{dataset}_enrolls": enrolled}
            sets |= {f"{dataset}_trials_{part}": said for part, said in parts.items()}
            for i, (each, said) in enumerate(sets.items()):
                vectors = drawn(said, spread, seed=10 * seed + i)
                cached(results, f"{each}{suffix}", said, vectors, means="enrolls" in each)
    return root / "exp" / "asv_anon_mcadams"
