"""What the codec's codes tell of who speaks, before anybody makes sound of them.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.usc_codes ../shared/speech CACHE
        [--network FILE] [--epsilons 50,15,5] [--each 12] [--learn 16] [--together 1,4]

Readers, references and queries are those of `benchmarks.usc_privacy`; a query is one utterance or
several together, a reference all that there are of a reader. Two attackers: one counts C0 alone
and takes the likelihood of a query's codes under each reader's counts, as the feature ``tokens`` is
compared; the other has trained on codes of train-clean-5 and train-clean-100, whose readers have
trained the codec as well (`benchmarks.anonymity.streams`), but nobody of dev-clean. Prints MeanD in
bits and the share of first ranks for each stream of codes, with 95 % interval over readers; under
noise for an attacker who enrolled noisy codes, and for one who enrolled codes of clear speech.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from benchmarks.anonymity.codec import network_of
from benchmarks.anonymity.excerpts import QUERY, Excerpt, excerpts
from benchmarks.anonymity.figures import BITS
from benchmarks.anonymity.stream_attacks import Heard, counted, trained
from benchmarks.anonymity.streams import Stream, features, heard, learnt
from benchmarks.anonymity.tables import limited
from monitor.cli.options import progress_over
from monitor.lab.evaluation import EvaluationSettings, ScoreMatrix, evaluate
from monitor.lab.result_cache import ResultCache

_LEARNERS = ("train-clean-5", "train-clean-100")
_KEYS = (BITS, "anonymity.share_rank_at_most_1", "anonymity.mean_rank_p50")


def main() -> None:
    words = argparse.ArgumentParser(description="What codes tell.")
    words.add_argument("speech", type=Path)
    words.add_argument("cache", type=Path, help="a private folder for what was heard")
    words.add_argument("--network", default="", help="weights (default: those that ship)")
    words.add_argument("--epsilons", default="50,15,5", help="of noise on C0 (default 50,15,5)")
    words.add_argument("--each", type=int, default=12, help="queries, and references, of a reader")
    words.add_argument("--learn", type=int, default=16, help="the same, of a reader learnt from")
    words.add_argument("--together", default="1,4", help="utterances of a query (default 1,4)")
    asked = words.parse_args()
    together = [int(count) for count in asked.together.split(",")]
    judged = excerpts(asked.speech / "dev-clean", asked.each)
    taught = [e for name in _LEARNERS for e in excerpts(asked.speech / name, asked.learn)]
    cache = ResultCache(asked.cache / "streams")
    network = network_of(asked.network)

    def listen(stream: Stream, chosen: list[Excerpt]) -> Heard:
        with progress_over(sum(e.seconds for e in chosen), str(stream), "s") as progress:
            return heard(stream, chosen, cache, progress)

    clear = Stream(1, None, asked.network)
    noisy = [Stream(1, float(e), asked.network) for e in asked.epsilons.split(",") if e]
    lengths = [each.seconds for each in judged if each.role == QUERY]
    print("| stream | enrolled | attacker | utterances, queries | MeanD, bits | first | rank p50 |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for stream in (Stream(0), Stream(len(network.books), None, asked.network), clear, *noisy):
        published = listen(stream, judged)
        for enrolled in dict.fromkeys([stream, clear if stream.epsilon else stream]):
            own = listen(enrolled, judged)
            known = [listen(each, taught) for each in dict.fromkeys([stream, enrolled])]
            turn = learnt(
                np.stack([features(stream, one) for each in known for one in each]),
                [one.speaker for one in taught] * len(known),
            )
            for count in together:
                attacks = {"trained": trained(judged, published, own, turn, stream, count)}
                if stream.books == 1:
                    attacks["counts"] = counted(judged, published, own, network.books.size, count)
                for attacker, matrix in attacks.items():
                    print(_row(stream, enrolled, attacker, count, matrix), flush=True)
    print(f"\nN = {matrix.population}; an utterance has {np.mean(lengths):.1f} s on average")


def _row(stream: Stream, enrolled: Stream, attacker: str, count: int, matrix: ScoreMatrix) -> str:
    found = evaluate(matrix, settings=EvaluationSettings(only=("srd", "anonymity"))).figures
    told = [
        limited({"value": f.value, "low": f.low, "high": f.high}, 2)
        for f in (found[key] for key in _KEYS)
    ]
    own = "the same" if enrolled == stream else "codes of clear speech"
    return (
        "| "
        + " | ".join((_called(stream), own, attacker, f"{count}, {matrix.trials}", *told))
        + " |"
    )


def _called(stream: Stream) -> str:
    if not stream.books:
        return "spectra of the recording"
    if stream.epsilon:
        return f"C0, epsilon {stream.epsilon:g}"
    return "C0" if stream.books == 1 else f"all {stream.books} codebooks"


if __name__ == "__main__":
    main()
