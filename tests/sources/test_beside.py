"""Words that come while a live source is heard."""

import json
from threading import Event
from typing import Any

import numpy as np
import pytest

from monitor import Monitor
from monitor.run import Run
from monitor.sources import AudioQueue
from monitor.sources.beside import LiveWords
from monitor.stream.clocks import check_words
from monitor.transcripts.live import WordPipe
from monitor.types import Block, FloatArray, Gap, Words
from tests.contracts import RATE, voice
from tests.stream.test_beside import Style, population


def line(word: str, begin: float, end: float, **more: Any) -> str:
    return json.dumps({"word": word, "begin": begin, "end": end, **more})


class Two(AudioQueue):
    """A device that went and came back: its second second is another recording."""

    def __iter__(self) -> Any:
        for recording in (0, 1):
            yield Block(voice(1.0), RATE, recording)


def heard(pipe: WordPipe, sound: FloatArray) -> list[Any]:
    """What a second at a time of a live source, whose words have all come, gives."""
    queue = AudioQueue(RATE)
    with LiveWords(queue, pipe) as source:
        pipe.wait()
        for part in np.split(sound, range(RATE, len(sound), RATE)):
            queue.put(part)
        queue.stop()
        return list(source)


def words_of(items: list[Any]) -> Words:
    (words,) = (item for item in items if isinstance(item, Words))
    return words


def test_a_word_counts_when_it_comes_and_never_before_it_was_said():
    lines = [line("a", 0.1, 0.3), line("so", 0.4, 2.5), line("the", 0.2, 0.4, known=0.6)]
    words = words_of(heard(WordPipe(lines), voice(1.0)))
    check_words(words)
    assert words.texts == ("a", "the", "so")
    assert words.known.tolist() == [100, 100, 250]


def test_after_a_device_came_back_words_lie_on_the_clock_of_the_new_recording():
    lines, first, found = [line("a", 0.5, 0.9), line("so", 1.2, 1.4)], Event(), []

    def one_by_one() -> Any:
        yield lines[0]
        first.wait(5.0)
        yield lines[1]

    pipe = WordPipe(one_by_one())
    with LiveWords(Two(RATE), pipe) as source:
        pipe.wait(0.2)
        for item in source:
            if isinstance(item, Words):
                check_words(item)
                found.append((item.texts, item.recording, item.begins[0], item.known[0]))
            elif item.recording == 0:
                first.set()
                pipe.wait(5.0)
    assert found == [(("a",), 0, 50, 100), (("so",), 1, 20, 100)]


def test_of_two_speakers_nobody_chose_between_the_first_counts():
    told: list[str] = []
    lines = [line("a", 0.1, 0.3, speaker="ann"), line("so", 0.4, 0.5, speaker="bob")]
    assert words_of(heard(WordPipe(lines, report=told.append), voice(1.0))).texts == ("a",)
    (said,) = told
    assert "Only those of ann count from now on" in said


@pytest.mark.parametrize("on_change", ["note", "split"])
def test_a_run_counts_them_and_tells_how_they_lay(on_change):
    lines = [line(("a", "so", "the", "moon")[i % 4], i / 4, i / 4 + 0.2) for i in range(8)]
    pipe, queue = WordPipe(lines), AudioQueue(RATE)
    monitor = Monitor(population(), ["f0", Style()], "ann", on_change=on_change)
    with Run(LiveWords(queue, pipe), monitor) as run:
        pipe.wait()
        for part in np.split(voice(3.0), 6):
            queue.put(part)
        queue.stop()
        records = [event.record() for event in run]
    start, *rest, end = records
    assert start["transcripts"] == [
        {"recording": "audio", "transcript": "-", "words": None, "spread": None, "speaker": None}
    ]
    assert end["transcripts"][0]["words"] == 8
    last = [record for record in rest if record["type"] == "reading"][-1]
    assert last["features"]["style"]["usable"] == pytest.approx(6 * 0.2)


def test_words_far_ahead_of_what_was_heard_are_left_out_and_all_that_was_is_told():
    told: list[str] = []
    rows = ["no json", line("a", 0.1, 0.3), line("so", 100, 200), line("the", 200, 400)]
    pipe = WordPipe(rows, report=told.append)
    assert words_of(heard(pipe, voice(1.0))).texts == ("a",)
    assert (pipe.malformed, pipe.ahead) == (1, 2)
    assert told[1].startswith("-: excluded a word that ends at 200 s, after only 1 s of audio")
    assert told[2:] == ["-: excluded 1 malformed line and 2 words ahead in total"]
    waiting = WordPipe([line("so", 11.4, 11.9)])  # of sound that waits
    assert words_of(heard(waiting, voice(4.0))).texts == ("so",)
    assert waiting.ahead == 0


@pytest.mark.parametrize("lines", [[line("a", 0.1, 0.3)], []])
def test_a_recogniser_that_ends_before_the_voice_is_noticed_once(lines):
    pipe = WordPipe(lines)
    gaps = [item for item in heard(pipe, voice(5.0)) if isinstance(item, Gap)]
    assert [(gap.reason, gap.lost_seconds) for gap in gaps] == [("words ended", None)]
    assert gaps[0].detail == "no more words arrive, so style does not change after 0:01"
