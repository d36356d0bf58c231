"""Common parts of the stages: their arguments and their logs."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import orjson

PATHS = {
    "speech": "LibriSpeech, with its manifest.csv",
    "nonnative": "speechocean762, with its manifest.csv",
    "voices": "people at their own microphones, with manifest.csv",
    "noise": "recordings of noise",
    "cache": "data that the recipe has prepared",
    "frames": "frames by monitor enrol --frames",
    "begun": "initial weights of the first training, .npz",
    "out": "output: a file, or the folder of a training",
    "target": "the file of weights, .npz",
}
"""Help of the folders and files that stages take."""


def stage(description: str, *paths: str) -> argparse.ArgumentParser:
    """Return the parser of a stage that takes some of `PATHS`."""
    parser = argparse.ArgumentParser(description=description)
    for name in paths:
        parser.add_argument(name, type=Path, help=PATHS[name])
    return parser


def add_row(path: Path, row: Mapping[str, Any]) -> None:
    """Append a row to private JSON lines, so that an interrupted run can resume."""
    with open(path, "ab", opener=partial(os.open, mode=0o600)) as file:
        file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
