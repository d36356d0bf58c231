"""Runs a benchmark by its name: `python -m benchmarks NAME ...`; without a name lists them."""

from __future__ import annotations

import sys

from benchmarks.page import run

if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
