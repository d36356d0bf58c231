from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.errors import UsageError
from monitor.web.guard import COOKIE, Token, host_of, is_loopback, may_ask_for

SECRET = "correct horse battery"


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


def test_a_token_lets_in_as_a_header_or_as_its_cookie():
    token = Token(SECRET)
    assert token.lets_in(f"Bearer {SECRET}", "")
    assert token.lets_in(f"bearer  {SECRET}", "")
    assert token.lets_in("", f"other=1; {COOKIE}={token.cookie}")
    for authorization, cookies in (
        ("", ""), (SECRET, ""), ("Bearer", ""), ("Bearer wrong", ""), ("Basic " + SECRET, ""),
        ("", f"{COOKIE}={SECRET}"), ("", f"{COOKIE}="), ("", "=;=;,"), ("Bearer é", f"{COOKIE}=é"),
    ):  # fmt: skip
        assert not token.lets_in(authorization, cookies), (authorization, cookies)


def test_a_token_is_shown_nowhere():
    token = Token(SECRET)
    assert SECRET not in repr(token) + str(token) + token.cookie
    with pytest.raises(UsageError, match="12 printable characters") as raised:
        Token("too short")
    assert "too short" not in str(raised.value)
    with pytest.raises(UsageError):
        Token("with a\nline break")
