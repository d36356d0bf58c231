"""Who may enter: names that the page answers to, tokens, sessions and cookies."""

from __future__ import annotations

import asyncio
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.errors import UsageError
from monitor.web import guard as module
from monitor.web.guard import (
    COOKIE,
    MOST_ADDRESSES,
    MOST_SESSIONS,
    SESSION_SECONDS,
    TRIES,
    Access,
    Answer,
    host_of,
    is_loopback,
    may_ask_for,
)
from tests.web.conftest import SECRET


@pytest.mark.parametrize(
    ("header", "loopback", "anywhere"),
    [
        ("localhost", True, True),
        ("LocalHost:8000", True, True),
        ("localhost.:8000", True, True),
        ("127.0.0.1:8000", True, True),
        ("127.9.9.9", True, True),
        ("[::1]:8000", True, True),
        ("192.0.2.7:8000", False, True),
        ("[2001:db8::1]", False, True),
        (socket.gethostname(), False, True),
        ("evil.example", False, False),
        ("127.0.0.1.evil.example", False, False),
        ("localhost.evil.example:8000", False, False),
        ("evil.example:127.0.0.1", False, False),
        ("127.0.0.1@evil.example", False, False),
        ("", False, False),
        ("[::1", False, False),
        ("localhost:80:80", False, False),
        ("localhost:80x", False, False),
    ],
)
def test_which_names_it_answers_to(header, loopback, anywhere):
    assert may_ask_for(header, "127.0.0.1") == loopback
    assert may_ask_for(header, "0.0.0.0") == anywhere


@given(st.text(max_size=40))
def test_no_host_header_breaks_it(header):
    if may_ask_for(header, "127.0.0.1"):
        assert is_loopback(host_of(header))


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def access(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Access:
    monkeypatch.setattr(module, "WRONG_SECONDS", 0.0)
    return Access(SECRET, clock)


def offer(access: Access, token: str, address: str = "127.0.0.1") -> Answer:
    return asyncio.run(access.offer(token, address))


@pytest.mark.parametrize("wrong", ["", "correct", SECRET + "!", "é", "Bearer " + SECRET])
def test_the_token_and_nothing_else(access, wrong):
    assert offer(access, SECRET) is Answer.RIGHT
    assert offer(access, wrong) is Answer.WRONG


def test_an_address_has_so_many_tries(access, clock):
    for _ in range(10):  # a minute, as SECURITY.md says
        assert offer(access, "wrong") is Answer.WRONG
    assert offer(access, "wrong") is Answer.WAIT
    assert offer(access, SECRET) is Answer.RIGHT  # else anybody could keep a reader out
    assert offer(access, "wrong") is Answer.WAIT
    assert 0 < access.wait_seconds("127.0.0.1") <= 60
    assert offer(access, "wrong", "192.0.2.7") is Answer.WRONG
    clock.now += 60
    assert access.wait_seconds("127.0.0.1") == 0
    assert offer(access, "wrong") is Answer.WRONG


def test_guesses_at_the_same_moment_are_counted_as_well_and_answered_late():
    async def all_at_once() -> list[Answer]:
        access, loop = Access(SECRET), asyncio.get_running_loop()
        began = loop.time()
        found = await asyncio.gather(*(access.offer(f"guess {i}", "::1") for i in range(50)))
        assert loop.time() - began >= 0.49
        return found

    answers = asyncio.run(all_at_once())
    assert answers.count(Answer.WRONG) == TRIES
    assert answers.count(Answer.WAIT) == 50 - TRIES


@pytest.mark.parametrize(
    ("tried", "same", "other"),
    [
        ([f"2001:db8::{i:x}" for i in range(TRIES)], "2001:db8::ffff", "2001:db8:0:1::1"),
        (["127.0.0.1", "::1", "::ffff:127.0.0.9", "127.3.2.1"], "127.9.9.9", "192.0.2.7"),
    ],
    ids=["a site of IPv6", "this machine"],
)
def test_what_one_can_speak_from_is_one_address(access, tried, same, other):
    for i in range(TRIES):
        offer(access, "wrong", tried[i % len(tried)])
    assert offer(access, "wrong", same) is Answer.WAIT
    assert offer(access, "wrong", other) is Answer.WRONG


def test_addresses_are_not_remembered_without_end(access):
    for i in range(MOST_ADDRESSES + 50):
        offer(access, "wrong", f"10.{i // 65536}.{i // 256 % 256}.{i % 256}")
    assert len(access._wrong) == MOST_ADDRESSES


def test_sessions_are_random_and_end(access, clock):
    first, second = access.begin(), access.begin()
    assert first != second
    assert SECRET not in first
    assert Access(SECRET).begin() not in (first, second)
    for value in (first, second):
        assert access.knows(f"other=1; {COOKIE}_1={value}; more=2")
    access.end(f"{COOKIE}_1={first}")
    assert not access.knows(f"{COOKIE}_1={first}")
    assert access.knows(f"{COOKIE}_1={second}")
    clock.now += SESSION_SECONDS
    assert not access.knows(f"{COOKIE}_1={second}")


WITHOUT_VALUE = ["", "=;=;,", COOKIE, f"{COOKIE}_", f"{COOKIE}_1="]


@pytest.mark.parametrize(
    "cookies", [*WITHOUT_VALUE, f"{COOKIE}_1={SECRET}", f"{COOKIE}_1=é", ";" * 9000]
)
def test_no_session_no_entry(access, cookies):
    access.begin()
    assert not access.knows(cookies)
    access.end(cookies)


def test_a_long_cookie_takes_no_time(access):
    """The standard library's parser is quadratic in escaped quotes: 60 kB took it ten seconds."""
    value = access.begin()
    hostile = '"' + "\\" * 30_000 + "; "
    for _ in range(200):
        assert not access.knows(hostile)
    assert access.knows(hostile + f"{COOKIE}_1={value}")


def test_there_are_so_many_sessions(access):
    made = [access.begin() for _ in range(MOST_SESSIONS + 1)]
    known = [access.knows(f"{COOKIE}_1={value}") for value in made]
    assert known == [False] + [True] * MOST_SESSIONS


def test_a_token_is_shown_nowhere(access):
    assert SECRET not in repr(access) + str(access)
    with pytest.raises(UsageError, match="12 printable characters") as raised:
        Access("too short")
    assert "too short" not in str(raised.value)
    with pytest.raises(UsageError):
        Access("with a\nline break")
