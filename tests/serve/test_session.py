"""The browser's microphone is heard as any other: the same templates, the same readings."""

from __future__ import annotations

import json
import stat
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from monitor import Run
from monitor.corpus import Corpus, Recording
from monitor.errors import UsageError
from monitor.population.cohort import FeatureTemplates
from monitor.population.people import Speaker
from monitor.population.population import Population
from monitor.serve.page import ListeningPage
from monitor.serve.session import BrowserMicrophone, RefusedError, ServeSettings, Session
from monitor.serve.templates import TemplateFolder, checked_name
from monitor.sources import File
from monitor.training.enrolling import enrol
from monitor.types import Block, Gap
from monitor.web.hub import Hub
from tests.serve.conftest import ENROL_SECONDS, TOKEN, frames

RATE = 16_000


def until(done: Callable[[], Any], seconds: float = 60.0) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := done():
            return found
        time.sleep(0.01)
    raise AssertionError("it never came")


def told(line: Any, kind: str) -> dict[str, Any]:
    """The next message of a kind; an error that comes before it fails."""
    while True:
        message: dict[str, Any] = json.loads(line.recv(timeout=60))
        if message["type"] == kind:
            return message
        assert message["type"] != "error", message


def reached(hub: Hub, readings: int) -> bool:
    return sum(entry.kind == "reading" for entry in hub.after(0)) >= readings


@pytest.fixture(scope="module")
def settings(others, tmp_path_factory) -> ServeSettings:
    folder = tmp_path_factory.mktemp("data") / "people"
    return ServeSettings(TemplateFolder(folder, others), ENROL_SECONDS, 60.0)


@pytest.fixture(scope="module")
def enrolled(settings, chapters) -> tuple[ServeSettings, list[dict[str, Any]]]:
    """Ann, enrolled by a session; what the browser was told."""
    said: list[dict[str, Any]] = []
    session = Session(settings, lambda message: said.append(dict(message)))
    session.enrol("Ann", RATE)
    for frame in frames(chapters[0][: 25 * RATE]):
        session.receive_audio(frame)
    until(lambda: not session.busy)
    return settings, said


def test_enrolment_at_the_page_makes_the_template_of_enroll(enrolled, chapters, tmp_path):
    settings, said = enrolled
    path = tmp_path / "ann.wav"
    soundfile.write(path, chapters[0][: 25 * RATE], RATE, subtype="PCM_16")
    corpus = Corpus((Recording("Ann", "one", path),), ())
    expected = enrol(corpus, features=settings.features, seconds=ENROL_SECONDS).population
    made = settings.templates.load("Ann")
    rows = slice(*made.offsets[made.index("Ann") : made.index("Ann") + 2])
    for name, each in expected.features.items():
        np.testing.assert_array_equal(made.features[name].slices[rows], each.slices)
    assert len(made) == len(settings.templates.base) + 1
    kinds = [message["type"] for message in said]
    assert kinds[-2:] == ["enrolled", "over"]
    assert "progress" in kinds
    assert said[-2]["seconds"] == ENROL_SECONDS
    assert said[-2]["trouble"] == ""
    assert "dry" in said[-2]["sound"]


@pytest.mark.parametrize(
    "name", ["सुनीता", "O'Brien", "O’Neill", "நந்தினி", "Zoe\u0308", "X\u0323\u0302u"]
)
def test_names_with_marks_and_apostrophes_are_those_of_people(tmp_path, name):
    """Letters that are written with several characters, in one spelling."""
    folder = TemplateFolder(tmp_path / "people")
    called = checked_name(name)
    readers = Population.reference().only(["f0"])
    f0, (first, last) = readers.features["f0"], readers.offsets[:2]
    own = FeatureTemplates(f0.spec, f0.slices[first:last])
    folder.save(called, Population([Speaker(called)], np.array([0, last - first]), {"f0": own}))
    assert [each.name for each in folder.people()] == [called]
    assert folder.has(name)
    assert called in folder.load(name).names
    folder.forget(name)
    assert folder.people() == []


def test_a_template_is_private_and_holds_no_sound(enrolled):
    folder = enrolled[0].templates.folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [path.name for path in folder.iterdir()] == ["Ann.npz"]
    assert stat.S_IMODE((folder / "Ann.npz").stat().st_mode) == 0o600


def test_a_run_at_the_page_reads_as_a_replay(enrolled, chapters, tmp_path):
    settings, _ = enrolled
    seconds = 8
    path = tmp_path / "talk.wav"
    soundfile.write(path, chapters[1][: seconds * RATE], RATE, subtype="PCM_16")
    monitor = partial(settings.monitor, name="Ann")
    with Run(File(path), monitor) as run:
        replayed = [dict(event.record()) for event in run if event.type == "reading"]
    session = Session(settings, lambda _: None)
    session.listen("Ann", RATE, 6.0)
    hub = session.hub
    assert hub is not None
    for second in range(seconds):  # no faster than it is heard, or it hears less
        part = chapters[1][second * RATE : (second + 1) * RATE]
        for frame in frames(part, second * RATE):
            session.receive_audio(frame)
        until(partial(reached, hub, second))
    session.stop()
    until(lambda: not session.busy)
    heard = [json.loads(e.data) for e in hub.after(0) if e.kind == "reading"]
    assert [each.pop("lag") < 5 for each in heard] == [True] * seconds
    for each in replayed:
        each.pop("lag", None)
    assert heard == json.loads(json.dumps(replayed))
    assert heard[-1]["bits"] > 1  # it is her


def test_the_threshold_moves_while_she_speaks(enrolled, chapters):
    settings, _ = enrolled
    session = Session(settings, lambda _: None)
    session.listen("Ann", RATE, 30.0)
    hub = session.hub
    assert hub is not None
    for frame in frames(chapters[1][: 6 * RATE]):
        session.receive_audio(frame)
    until(partial(reached, hub, 5))
    session.adjust(0.5)
    assert [each.threshold for each in hub.state().forecast] == [0.5]
    for frame in frames(chapters[1][6 * RATE : 14 * RATE], 6 * RATE):
        session.receive_audio(frame)
    alert = until(lambda: [json.loads(e.data) for e in hub.after(0) if e.kind == "alert"])[0]
    assert (alert["threshold"], alert["state"]) == (0.5, "raised")
    assert alert["seconds"] > 5
    session.close()
    assert not session.busy


def test_forgetting_overwrites_what_was_there(enrolled, tmp_path):
    made = enrolled[0].templates.load("Ann")
    folder = TemplateFolder(tmp_path / "people")
    folder.folder.mkdir()
    path = folder.folder / "Ann.npz"
    made.save(path)
    left = folder.folder / ".Ann.npz.abcdefgh.unfinished"
    left.write_bytes(path.read_bytes())
    with path.open("rb") as old:
        folder.forget("Ann")
        assert set(old.read()) == {0}
    assert list(folder.folder.iterdir()) == []
    with pytest.raises(UsageError, match="letters"):
        folder.forget("../Ann")


def test_one_purpose_at_a_time_and_names_that_can_be_had(settings):
    session = Session(settings, lambda _: None)
    session.enrol("Bob", 48_000)
    with pytest.raises(UsageError, match="one microphone"):
        session.enrol("Cid", 48_000)
    session.close()
    with pytest.raises(UsageError, match="already"):
        session.enrol(settings.templates.base.names[0], 48_000)
    with pytest.raises(UsageError, match="nobody"):
        session.listen("Dora", 48_000, 6.0)
    for rate in (0, -1, 7_999, 10**9):
        with pytest.raises(UsageError, match="none of a microphone"):
            session.enrol("Eve", rate)


@given(st.text())
def test_no_name_leaves_the_folder(tmp_path_factory, name):
    folder = Path("people")
    try:
        path = TemplateFolder(folder)._path(name)
    except UsageError:
        return
    assert path.parent == folder
    assert path.stem == checked_name(name)
    assert not path.name.startswith(".")


# --- The source.


def items(microphone: BrowserMicrophone) -> Iterator[tuple[str, float]]:
    for item in microphone:
        if isinstance(item, Block):
            yield "sound", round(len(item.samples) / item.rate, 3)
        elif isinstance(item, Gap):
            yield item.reason, round(item.lost_seconds or 0.0, 3)


@given(st.lists(st.booleans(), min_size=1, max_size=30))
def test_what_is_lost_on_the_way_is_a_gap_and_nothing_else(came):
    sound = np.arange(320 * len(came)) % 100
    with BrowserMicrophone(RATE, seconds=60) as microphone:
        for there, frame in zip(came, frames(sound), strict=True):
            if there:
                microphone.receive_audio(frame)
        microphone.stop()
        found = list(items(microphone))
    last = max((i for i, there in enumerate(came) if there), default=-1)
    lost = 0.02 * came[: last + 1].count(False)
    assert sum(s for what, s in found if what == "sound") == pytest.approx(0.02 * sum(came))
    assert sum(s for what, s in found if what == "dropped") == pytest.approx(lost)


@pytest.mark.parametrize(
    "message",
    [b"", bytes(7), bytes(8), bytes(9), bytes(8 + 2 * RATE + 2)],
    ids=["nothing", "half a place", "no sound", "half a sample", "more than a second"],
)
def test_what_is_no_sound_is_refused(message):
    with BrowserMicrophone(RATE, seconds=60) as microphone, pytest.raises(RefusedError):
        microphone.receive_audio(message)


def test_sound_neither_goes_back_nor_comes_faster_than_anybody_speaks():
    now = [0.0]
    with BrowserMicrophone(RATE, seconds=600, clock=lambda: now[0]) as microphone:
        for frame in frames(np.zeros(RATE)):
            microphone.receive_audio(frame)
        with pytest.raises(RefusedError, match="back"):
            microphone.receive_audio(next(frames(np.zeros(320), 320)))
        far = 200 * RATE
        with pytest.raises(RefusedError, match="faster"):
            microphone.receive_audio(next(frames(np.zeros(320), far)))
        now[0] = 200.0
        microphone.receive_audio(next(frames(np.zeros(320), far)))


# --- Over the wire.


def test_a_browser_that_comes_back_goes_on_with_its_session(served, line, client):
    first = line()
    session = told(first, "ready")["session"]
    first.send(json.dumps({"do": "enrol", "name": "Bea", "rate": RATE}))
    for frame in frames(np.zeros(RATE)):
        first.send(frame)
    told(first, "progress")
    first.close()
    again = line(session)
    ready = told(again, "ready")
    assert ready["session"] == session
    assert ready["busy"]
    again.send(json.dumps({"do": "cancel"}))
    told(again, "over")
    assert "Bea" not in client.get("/people").text


def test_only_who_has_the_session_follows_it(served, client):
    assert client.get("/events").status_code == 404
    assert client.get("/events?session=guess").status_code == 404


@pytest.mark.parametrize("given", [{"host": "0.0.0.0"}, {"host": "192.0.2.1"}])
def test_elsewhere_it_needs_a_certificate(settings, given):
    with pytest.raises(UsageError, match="no microphone without https"):
        ListeningPage(settings, token=TOKEN, **given)


def test_the_population_is_one_that_every_command_reads(enrolled):
    assert "Ann" in Population.load(enrolled[0].templates.folder / "Ann.npz").names


# --- Through an anonymiser.


def test_what_is_measured_through_an_anonymiser_comes_back(enrolled, chapters, tmp_path):
    settings, _ = enrolled
    sent: list[bytes] = []
    session = Session(settings, lambda _: None, sent.append)
    seconds, sound = 6, chapters[1][: 6 * RATE]
    session.listen("Ann", RATE, 6.0, "noise:10")
    hub = session.hub
    assert hub is not None
    for second in range(seconds):
        for frame in frames(sound[second * RATE : (second + 1) * RATE], second * RATE):
            session.receive_audio(frame)
        until(partial(reached, hub, second))
    session.stop()
    until(lambda: not session.busy)
    places = [int.from_bytes(each[:8], "little") for each in sent]
    back = np.concatenate([np.frombuffer(each[8:], "<i2") for each in sent])
    assert places == list(np.cumsum([0, *(len(each) // 2 - 4 for each in sent)])[:-1])
    assert len(back) == len(sound)
    noise = back.astype(float) - sound
    loud = 10 * np.log10(np.mean(sound.astype(float) ** 2) / np.mean(noise**2))
    assert loud == pytest.approx(10, abs=3)  # its noise, and nothing else
    path = tmp_path / "protected.wav"
    soundfile.write(path, back, RATE, subtype="PCM_16")
    heard = [json.loads(e.data) for e in hub.after(0) if e.kind == "reading"]
    with Run(File(path), partial(settings.monitor, name="Ann")) as run:
        replayed = [event.record() for event in run if event.type == "reading"]
    told_there = [each["protected"]["bits"] for each in heard]
    assert told_there == pytest.approx([each["bits"] for each in replayed], abs=0.01)
    assert heard[-1]["bits"] != told_there[-1]


@pytest.mark.parametrize("method", ["command:true", "none", "usc:x", 7, ["mcadams:random"]])
def test_no_browser_chooses_what_is_not_on_the_list(enrolled, method):
    session = Session(enrolled[0], lambda _: None)
    with pytest.raises(UsageError, match="no such anonymiser"):
        session.listen("Ann", RATE, 6.0, method)
    assert not session.busy
