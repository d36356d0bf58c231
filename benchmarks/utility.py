"""What a protected voice is still good for, and whether the phone error rate tells it truly.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.utility ../shared/speech/dev-clean
        [--readers 20] [--seconds 45] [--methods none,mcadams:0.9,...]

Of each reader the beginning of a recording that has a transcript beside it (start, end and words of
each utterance, CHAPTER.tsv). Prints, for each method: the figures of `monitor.lab.utility` with
95 % limits over readers; the phone error rate against the transcript, of the clear and the
protected recording, over the utterances all of whose words the CMU dictionary has (pocketsphinx
carries it, extra `peers`); and the CPU time of the measures, in that of hearing f0, phones and
voice once.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from monitor.anonymisers import Utterance, make
from monitor.corpus import find
from monitor.features.extractor import Extractor
from monitor.features.phones import recognise_phones
from monitor.features.registry import make as make_features
from monitor.lab.utility import Utility, compare, compute_figures, count_edits, extract_content
from monitor.sources import File
from monitor.types import Block, FloatArray
from recipes.phones.words import Words

FEATURES = ("f0", "phones", "voice")
METHODS = "none,mcadams:0.9,mcadams:0.8,mcadams:0.6,mcadams:random,noise:30,noise:20,noise:10"


@dataclass(frozen=True)
class Excerpt:
    """The beginning of a recording, and its utterances: first and last sample, phones."""

    name: str
    speaker: str
    samples: FloatArray
    rate: int
    said: tuple[tuple[int, int, tuple[str, ...]], ...]


def main() -> None:
    words = argparse.ArgumentParser(description="Utility of protected voices.")
    words.add_argument("speech", type=Path)
    words.add_argument("--readers", type=int, default=20)
    words.add_argument("--seconds", type=float, default=45.0)
    words.add_argument(
        "--methods",
        default="none,mcadams:0.9,mcadams:0.8,mcadams:0.6,mcadams:random,noise:20,noise:10",
    )
    asked = words.parse_args()
    chosen = list(excerpts(asked.speech, asked.readers, asked.seconds))
    phones = sum(len(said) for each in chosen for *_, said in each.said)
    print(
        f"{len(chosen)} readers, {sum(e.samples.size / e.rate for e in chosen) / 60:.1f} min; "
        f"{phones} phones of {sum(len(e.said) for e in chosen)} utterances in the dictionary",
        flush=True,
    )
    for method in asked.methods.split(","):
        print(row(method, chosen), flush=True)
    print(cost(chosen[:4]))


def excerpts(speech: Path, readers: int, seconds: float) -> Iterator[Excerpt]:
    corpus, dictionary = find(speech), Words.cmu()
    for name in corpus.speakers[:readers]:
        path = next(iter(corpus.sessions(name).values()))[0]
        told = path.with_suffix(".tsv").read_text("utf-8").splitlines()
        lines = [line.split("\t") for line in told if line[:1].isdigit()]
        lines = [line for line in lines if float(line[1]) <= seconds]
        with File(path, end_seconds=float(lines[-1][1])) as file:
            samples = np.concatenate([b.samples for b in file if isinstance(b, Block)])
        said = tuple(
            (round(float(a) * file.rate), round(float(b) * file.rate), dictionary.phones(text))
            for a, b, text in lines
            if dictionary.known(text)
        )
        yield Excerpt(f"{name}/{path.name}", name, samples, file.rate, said)


def row(method: str, chosen: list[Excerpt]) -> str:
    found: list[Utility] = []
    wrong = np.zeros((2, len(chosen)))
    for place, each in enumerate(chosen):
        anonymiser = make(method, Utterance(each.rate, each.name, each.speaker))
        safe = np.concatenate([anonymiser.process(each.samples), anonymiser.flush()])
        found.append(
            compare(extract_content(each.samples, each.rate), extract_content(safe, each.rate))
        )
        for which, samples in enumerate((each.samples, safe)):
            wrong[which, place] = sum(
                count_edits(
                    [p.phone for p in recognise_phones(samples[first:last], each.rate)], said
                )
                for first, last, said in each.said
            )
    told = [
        f"{figure.label} {figure.value:.3f} [{figure.low:.3f}, {figure.high:.3f}]"
        if figure.value is not None
        else f"{figure.label}: {figure.note}"
        for figure in compute_figures(found, [each.speaker for each in chosen])[:4]
    ]
    phones = sum(len(said) for each in chosen for *_, said in each.said)
    clear, protected = wrong.sum(axis=1) / phones
    return f"{method:15} {'  '.join(told)}  of the transcript {clear:.3f} -> {protected:.3f}"


def cost(chosen: list[Excerpt]) -> str:
    """CPU time, as shares: wall times of a busy machine mean nothing."""
    seconds = sum(each.samples.size / each.rate for each in chosen)

    def taken(work) -> float:  # type: ignore[no-untyped-def]
        began = time.process_time()
        for each in chosen:
            work(each)
        return time.process_time() - began

    def hear(each: Excerpt) -> None:
        extractor = Extractor(make_features(FEATURES))
        extractor.process(Block(each.samples, each.rate))
        extractor.flush()

    def measure(each: Excerpt) -> None:
        compare(extract_content(each.samples, each.rate), extract_content(each.samples, each.rate))

    for work in (hear, measure):
        work(chosen[0])  # networks are loaded once
    heard, measured = taken(hear), taken(measure)
    return (
        f"CPU: the measures take {measured / heard:.2f} times hearing {', '.join(FEATURES)} once, "
        f"{100 * measured / seconds:.2f} % of real time"
    )


if __name__ == "__main__":
    main()
