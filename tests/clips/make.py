"""Makes the clips: what real readers' recordings say to the features, and no audio.

    python -m tests.clips.make SPEECH

SPEECH holds LibriSpeech's dev-clean, and long/kerstin, as CORPUS/SPEAKER/CHAPTER.opus. Run it again
when a feature hears otherwise, or a network that ships is another.
"""

import sys
from pathlib import Path

from monitor.features.registry import make
from monitor.sources.frames import write_frames
from monitor.training.frames_folder import ExtractionOptions, extract_features

FOLDER = Path(__file__).parent
CLIPS: dict[str, tuple[float, tuple[str, ...]]] = {
    "dev-clean/422/122949": (100.0, ("f0",)),
    "dev-clean/1462/170138": (60.0, ("f0",)),
    "dev-clean/1272/128104": (60.0, ("f0",)),
    "dev-clean/1272/135031": (60.0, ("f0",)),
    "dev-clean/84/121123": (60.0, ("f0",)),
    "dev-clean/652/129742": (30.0, ("voice",)),
    "dev-clean/2803/154320": (30.0, ("voice",)),
    "long/kerstin/all": (40.0, ("f0", "phones", "voice")),
}
"""Seconds from the beginning of each recording, and the features that hear them."""


def clip(source: Path, target: Path, seconds: float, names: tuple[str, ...]) -> None:
    """Write the frames of the beginning of a recording: as of one that nobody has enrolled."""
    features = make(names)
    frames = extract_features(source, features, ExtractionOptions(names, seconds))
    target.parent.mkdir(exist_ok=True)
    write_frames(
        target,
        frames.speech,
        {name: frames.tracks[name] for name in names},
        {each.spec.name: each.spec.size for each in features},
        {each.spec.name: each.spec.frame_seconds for each in features},
        networks={each.spec.name: each.spec.network for each in features},
    )


if __name__ == "__main__":
    for name, (seconds, features) in CLIPS.items():
        target = FOLDER / Path(*Path(name).parts[1:]).with_suffix(".npz")
        clip(Path(sys.argv[1]) / f"{name}.opus", target, seconds, features)
