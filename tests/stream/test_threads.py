"""Several monitors in threads of one process, which share a population."""

import os
import subprocess
import sys
from pathlib import Path
from threading import Barrier, Thread

import soundfile
from threadpoolctl import threadpool_info, threadpool_limits

from monitor.jobs import one_thread

THREADS = 8
SCRIPT = """
import sys
from hashlib import sha256
from threading import Barrier, Thread

import soundfile

from monitor import Monitor, Population
from monitor.features.extractor import Extractor
from monitor.features.registry import FEATURES, make
from monitor.types import Block

sound, rate = soundfile.read(sys.argv[1], dtype="float32")
count = int(sys.argv[2])
blocks = [Block(sound[at : at + rate // 2], rate) for at in range(0, len(sound), rate // 2)]
audio = [name for name, entry in FEATURES.items() if entry.takes == "audio"]
population = Population.reference()
together = Barrier(count)
digests = [""] * count


def listen(thread):
    first = Extractor(make(["f0"]))
    together.wait()
    first.process(blocks[0])  # all threads need the same libraries at once
    monitor = Monitor(population, watch=population.names[3], on_change="split")
    digest = sha256()
    for block in blocks:
        for event in monitor.push(block):
            digest.update(repr(event.record()).encode())
    extractor = Extractor(make(audio), conditions=True)  # which loads more of scipy
    for block in blocks:
        for name, track in extractor.process(block).tracks.items():
            digest.update(name.encode() + track.ticks.tobytes() + track.values.tobytes())
    digests[thread] = digest.hexdigest()


threads = [Thread(target=listen, args=(thread,)) for thread in range(count)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(*digests, sep="\\n")
"""


def listen_in_threads(path: Path, count: int) -> list[str]:
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, path, str(count)],
        capture_output=True,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "2"},
        check=True,
    )
    return [*run.stdout.splitlines(), run.stderr]


def test_eight_monitors_of_a_fresh_process_measure_what_one_does(shared, tmp_path):
    speech = shared / "speech/dev-clean/1272/128104.opus"
    sound, rate = soundfile.read(speech, frames=6 * 16000, dtype="float32")
    soundfile.write(tmp_path / "speech.wav", sound, rate)
    alone, complaints = listen_in_threads(tmp_path / "speech.wav", 1)
    assert len(alone) == 64
    assert not complaints
    assert listen_in_threads(tmp_path / "speech.wav", THREADS) == [*[alone] * THREADS, ""]


def test_a_limit_of_threads_lasts_until_its_last_user_ends():
    entered, left, ended = Barrier(2), Barrier(2), Barrier(2)

    def other() -> None:
        with one_thread():
            entered.wait()
            left.wait()
        ended.wait()

    with threadpool_limits(2, user_api="blas"):
        thread = Thread(target=other)
        thread.start()
        with one_thread():
            entered.wait()
            with one_thread():
                assert _numpy_threads() == {1}
            assert _numpy_threads() == {1}
        assert _numpy_threads() == {1}  # the other still uses it
        left.wait()
        ended.wait()
        thread.join()
        assert _numpy_threads() == {2}


def _numpy_threads() -> set[int]:
    return {info["num_threads"] for info in threadpool_info() if "numpy" in info["filepath"]}
