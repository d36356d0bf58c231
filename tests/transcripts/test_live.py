"""Words through a pipe while they are said."""

import json
import os
import threading

from monitor.stream.clocks import check_words
from monitor.transcripts import WordPipe, lines_from
from tests.waiting import until


def line(word: str, begin: float, **more: object) -> str:
    return json.dumps({"word": word, "begin": begin, "end": begin + 0.2, **more})


def test_late_words_count_when_they_are_taken_and_early_ones_when_they_are_known():
    with WordPipe([line("so", 1.0), line("be", 0.5, known=9.0), line("it", 0.1)]) as pipe:
        pipe.wait()
        words = pipe.collect(300, recording=2)
        assert words is not None
        check_words(words)
        assert words.texts == ("it", "so", "be")
        assert words.known.tolist() == [300, 300, 900]
        assert words.recording == 2
        assert (pipe.count, pipe.over) == (3, True)
        assert pipe.collect(400) is None


def test_segments_of_whisper_and_speakers():
    rows = [
        json.dumps({"start": 0, "end": 2, "text": "so be it", "speaker": "ann"}),
        json.dumps({"segments": [{"start": 2, "end": 3, "text": "no", "speaker": "bob"}]}),
        json.dumps({"result": [{"word": "vosk", "start": 3, "end": 4, "conf": 1}], "text": "vosk"}),
        json.dumps({"partial": "not y"}),
        "",
    ]
    with WordPipe([*rows, line("yes", 4.0, speaker="ann")], speaker="ann") as pipe:
        pipe.wait()
        words = pipe.collect(0)
        assert words.texts == ("so", "be", "it", "yes")
        assert words.known.tolist() == [200, 200, 200, 420]
        assert list(pipe.labels) == ["ann", "bob"]
        assert pipe.malformed == 0


def test_malformed_lines_are_named_and_left_out():
    told: list[str] = []
    no_words = '{"word": "a", "begin": 2, "end": 1}'
    bad: list[bytes | str] = ["no json", "[]", b"\xff\xfe", '{"text": "so"}', no_words]
    with WordPipe([line("so", 1.0), *bad, *bad, line("it", 2.0)], report=told.append) as pipe:
        pipe.wait()
        words = pipe.collect(500)
    assert words.texts == ("so", "it")
    assert pipe.malformed == 10
    assert len(told) == 6
    form = '{"word": TEXT, "begin": SECONDS, "end": SECONDS}'
    assert told[0] == f"- line 2: must be {form}; line excluded"
    assert told[3].startswith("- line 5: its words have no time")
    assert told[-1] == "-: further malformed lines are excluded"
    assert all("\n" not in each for each in told)


def test_a_pipe_of_a_process_is_read_as_it_comes():
    reads, writes = os.pipe()
    with WordPipe(lines_from(reads)) as pipe:
        os.write(writes, line("so", 1.0).encode()[:9])
        assert pipe.collect(100) is None
        os.write(writes, line("so", 1.0).encode()[9:] + b"\r\n" + line("it", 2.0).encode())
        words = until(lambda: pipe.collect(200))
        assert words.texts == ("so",)
        assert not pipe.over
        os.close(writes)  # the last line has no end
        pipe.wait(5.0)
        last = pipe.collect(300)
        assert last.texts == ("it",)
        assert pipe.over
    os.close(reads)


def test_a_line_without_end_is_not_kept_whole():
    reads, writes = os.pipe()

    def flood() -> None:
        for _ in range(70):
            os.write(writes, b"x" * 60_000)
        os.close(writes)

    thread = threading.Thread(target=flood)
    thread.start()
    longest = max(map(len, lines_from(reads)))
    thread.join()
    os.close(reads)
    assert longest < 1_200_000


def test_a_recogniser_that_nobody_hears_waits_and_lets_go():
    made = 0

    def endless():
        nonlocal made
        while True:
            made += 1
            yield line("so", 1.0)

    pipe = WordPipe(endless())
    with pipe:
        pipe.wait(0.3)
    pipe.wait(5.0)
    before = made
    pipe.wait(0.1)
    assert made == before <= 10_002


def test_ten_thousand_words_in_a_second_are_left_out() -> None:
    told: list[str] = []
    with WordPipe([line("so", 1.0) for _ in range(9_990)], report=told.append) as pipe:
        pipe.wait()
        words = pipe.collect(100, audio_ticks=100)
        assert len(words.texts) == pipe.count == 1000
        assert pipe.beyond == 9_990 - pipe.count
        pipe.report_lost()
    assert len(told) == 2
    assert "too many for one speaker" in told[0]
    assert told[1].endswith("excluded 8,990 words too many in total")
