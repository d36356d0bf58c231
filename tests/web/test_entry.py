from __future__ import annotations

import asyncio

import pytest

from monitor.errors import UsageError
from monitor.web import entry as module
from monitor.web.entry import (
    COOKIE,
    MOST_ADDRESSES,
    MOST_SESSIONS,
    SESSION_SECONDS,
    TRIES,
    TRIES_SECONDS,
    Answer,
    Entry,
)

SECRET = "correct horse battery"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def entry(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Entry:
    monkeypatch.setattr(module, "WRONG_SECONDS", 0.0)
    return Entry(SECRET, clock)


def offer(entry: Entry, token: str, address: str = "127.0.0.1") -> Answer:
    return asyncio.run(entry.offer(token, address))


@pytest.mark.parametrize("wrong", ["", "correct", SECRET + "!", "é", "Bearer " + SECRET])
def test_the_token_and_nothing_else(entry, wrong):
    assert offer(entry, SECRET) is Answer.RIGHT
    assert offer(entry, wrong) is Answer.WRONG


def test_a_wrong_one_is_answered_late():
    async def measured(token: str) -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await Entry(SECRET).offer(token, "127.0.0.1")
        return loop.time() - began

    assert asyncio.run(measured("wrong")) >= module.WRONG_SECONDS * 0.99


def test_an_address_has_so_many_tries(entry, clock):
    for _ in range(TRIES):
        assert offer(entry, "wrong") is Answer.WRONG
    assert offer(entry, "wrong") is Answer.WAIT
    assert offer(entry, SECRET) is Answer.WAIT  # else guessing would go on
    assert 0 < entry.wait_seconds("127.0.0.1") <= TRIES_SECONDS
    assert offer(entry, SECRET, "192.0.2.7") is Answer.RIGHT
    clock.now += TRIES_SECONDS
    assert entry.wait_seconds("127.0.0.1") == 0
    assert offer(entry, SECRET) is Answer.RIGHT


def test_guesses_at_the_same_moment_are_counted_as_well():
    async def all_at_once() -> list[Answer]:
        entry = Entry(SECRET)
        return await asyncio.gather(*(entry.offer(f"guess {i}", "::1") for i in range(50)))

    answers = asyncio.run(all_at_once())
    assert answers.count(Answer.WRONG) == TRIES
    assert answers.count(Answer.WAIT) == 50 - TRIES


def test_a_site_of_ipv6_is_one_address(entry):
    for i in range(TRIES):
        offer(entry, "wrong", f"2001:db8::{i:x}")
    assert offer(entry, SECRET, "2001:db8::ffff") is Answer.WAIT
    assert offer(entry, SECRET, "2001:db8:0:1::1") is Answer.RIGHT


def test_addresses_are_not_remembered_without_end(entry):
    for i in range(MOST_ADDRESSES + 50):
        offer(entry, "wrong", f"10.{i // 65536}.{i // 256 % 256}.{i % 256}")
    assert len(entry._wrong) == MOST_ADDRESSES


def test_sessions_are_random_and_end(entry, clock):
    first, second = entry.begin(), entry.begin()
    assert first != second
    assert SECRET not in first
    assert Entry(SECRET).begin() not in (first, second)
    for value in (first, second):
        assert entry.knows(f"other=1; {COOKIE}={value}; more=2")
    entry.end(f"{COOKIE}={first}")
    assert not entry.knows(f"{COOKIE}={first}")
    assert entry.knows(f"{COOKIE}={second}")
    clock.now += SESSION_SECONDS
    assert not entry.knows(f"{COOKIE}={second}")


@pytest.mark.parametrize(
    "cookies", ["", "=;=;,", COOKIE, f"{COOKIE}=", f"{COOKIE}={SECRET}", f"{COOKIE}=é", ";" * 9000]
)
def test_no_session_no_entry(entry, cookies):
    entry.begin()
    assert not entry.knows(cookies)
    entry.end(cookies)


def test_a_long_cookie_takes_no_time(entry):
    """The standard library's parser is quadratic in escaped quotes: 60 kB took it ten seconds."""
    value = entry.begin()
    hostile = '"' + "\\" * 30_000 + "; "
    for _ in range(200):
        assert not entry.knows(hostile)
    assert entry.knows(hostile + f"{COOKIE}={value}")


def test_there_are_so_many_sessions(entry):
    made = [entry.begin() for _ in range(MOST_SESSIONS + 1)]
    known = [entry.knows(f"{COOKIE}={value}") for value in made]
    assert known == [False] + [True] * MOST_SESSIONS


def test_a_token_is_shown_nowhere(entry):
    assert SECRET not in repr(entry) + str(entry)
    with pytest.raises(UsageError, match="12 printable characters") as raised:
        Entry("too short")
    assert "too short" not in str(raised.value)
    with pytest.raises(UsageError):
        Entry("with a\nline break")
