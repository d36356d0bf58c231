"""The population that ships with the package, and the frames of the demo.

Readers of LibriSpeech (LibriVox volunteers): V. Panayotov, G. Chen, D. Povey, S. Khudanpur,
"Librispeech: an ASR corpus based on public domain audio books", ICASSP 2015, CC BY 4.0. Numbers
derived from their speech, no audio; rebuilt by ``python -m benchmarks.build_reference``.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["DEMO_SPEAKER", "demo_frames"]

DEMO_SPEAKER = "4406"
"""Enrolled from one chapter, heard in the demo from another; trained none of the networks."""


def demo_frames() -> Path:
    """Ten minutes of the demo's reader as frames: what every install hears of it, no audio."""
    return Path(__file__).parent / "demo.npz"
