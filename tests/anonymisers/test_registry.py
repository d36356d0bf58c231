from __future__ import annotations

from typing import Any

import pytest

from monitor.anonymisers import Unchanged, Utterance, make, register
from monitor.anonymisers.registry import ANONYMISERS
from monitor.errors import UsageError
from tests.sounds import RATE


def test_one_that_is_registered_is_found_with_its_setting(monkeypatch):
    monkeypatch.setattr("monitor.anonymisers.registry.ANONYMISERS", dict(ANONYMISERS))
    asked: list[tuple[str, Utterance]] = []

    def mine(*given: Any) -> Unchanged:
        asked.append(given)
        return Unchanged(RATE)

    register("mine", mine)
    assert isinstance(make("mine:a:b", Utterance(RATE)), Unchanged)
    assert asked == [("a:b", Utterance(RATE))]


@pytest.mark.parametrize("name", ["", "Mine", "a:b", "1"])
def test_a_name_that_could_not_be_asked_for_is_refused(name):
    with pytest.raises(UsageError):
        register(name, lambda *_: Unchanged(RATE))


def test_a_name_that_nobody_registered_is_refused_with_those_there_are():
    with pytest.raises(UsageError, match=r"are 'none', 'mcadams', .*'noise', 'usc'.*, those f"):
        make("identity", Utterance(RATE))


@pytest.mark.parametrize("setting", ["4", "4,", "4,1,1", "a,1.15"])
def test_a_setting_that_is_refused_is_quoted_whole(setting):
    with pytest.raises(UsageError, match=f"'{setting}' is not a setting such as voice:4,1.15"):
        make(f"voice:{setting}", Utterance(RATE))


def test_the_one_that_does_nothing_takes_no_setting():
    with pytest.raises(UsageError, match="no setting"):
        make("none:1", Utterance(RATE))


@pytest.mark.parametrize("method", ["usc:", "none:"])
def test_an_empty_setting_is_refused_where_none_would_do(method):
    with pytest.raises(UsageError, match=f"nothing stands after '{method}'"):
        make(method, Utterance(RATE))
