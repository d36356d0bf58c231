"""What a calibration costs after hearing: processor seconds of its cells, and of its streams.

    monitor hear VOICES -o frames --features f0,phones,voice
    python -m benchmarks.calibrate frames [--lengths 3,30] [--template-lengths 30,60] [--streams 2]

Calibrates on a part of the usual grid, and hears some readers as somebody else, with one thread of
linear algebra. Prints JSON; seconds are of the processor, of all threads together.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from threadpoolctl import threadpool_limits

from monitor.corpus.finding import find
from monitor.training.calibrating import calibrate, with_maxima
from monitor.training.enrolling import enrol
from monitor.training.voices import collect


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("frames", type=Path)
    parser.add_argument("--lengths", default="3,30", help="T, speech seconds (default 3,30)")
    parser.add_argument("--template-lengths", default="30,60", help="D (default 30,60)")
    parser.add_argument("--streams", type=int, default=2, help="readers as others (default 2)")
    options = parser.parse_args()
    tests, templates = (
        [float(each) for each in text.split(",")]
        for text in (options.lengths, options.template_lengths)
    )
    corpus = find(options.frames)
    with threadpool_limits(1):
        voices, specs, _ = collect(corpus)
        began = time.process_time()
        made = calibrate(voices, specs, lengths=tests, template_lengths=templates)
        fitted = time.process_time() - began
        population = enrol(corpus).population.calibrated(made)
        began = time.process_time()
        with_maxima(population, voices[: options.streams])
        heard = time.process_time() - began
    result = {
        "readers": len(voices),
        "cells": len({(row["session"], row["T"], row["D"]) for row in made.rows}),
        "rank_models": len(made.rank_models),
        "fit_seconds": round(fitted, 1),
        "streams": options.streams,
        "stream_seconds": round(heard, 1),
    }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
