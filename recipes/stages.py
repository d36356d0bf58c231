"""What the stages have in common: what each is given, and rows that it adds to as it goes."""

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
    "nonnative": "speechocean762, likewise",
    "voices": "people at their own microphones, likewise",
    "noise": "recordings of noise",
    "cache": "what the recipe has prepared",
    "frames": "by monitor enrol --frames",
    "begun": "weights that the first training begins with",
    "out": "what comes of it: of a training a folder",
    "target": "the file of weights, .npz",
}
"""Folders and files that stages are given."""


def stage(description: str, *paths: str) -> argparse.ArgumentParser:
    """The command of a stage, which is given some of `PATHS`."""
    parser = argparse.ArgumentParser(description=description)
    for name in paths:
        parser.add_argument(name, type=Path, help=PATHS[name])
    return parser


def add_row(path: Path, row: Mapping[str, Any]) -> None:
    """Write one row more of private JSON lines, so that a run that is stopped can go on."""
    with open(path, "ab", opener=partial(os.open, mode=0o600)) as file:
        file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
