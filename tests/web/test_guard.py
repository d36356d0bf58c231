from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.web.guard import host_of, is_loopback, may_ask_for


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
