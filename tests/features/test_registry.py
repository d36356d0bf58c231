"""Features by name: those of a default run, and what an unknown name is told."""

import pytest

from monitor.errors import UsageError
from monitor.features.own_network import SpeakerModel
from monitor.features.registry import (
    FEATURES,
    defaults,
    get_change_sensitivity,
    make,
    superseded,
    takes,
)


@pytest.mark.parametrize(("name", "hint"), [("f1", "did you mean f0"), ("zzz", "there is f0, ")])
def test_an_unknown_name_is_refused_with_a_hint(name, hint):
    with pytest.raises(UsageError, match=hint) as caught:
        make(["f0", name])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", sorted(FEATURES))
def test_every_name_makes_a_feature_that_says_how_it_is_followed(name):
    assert make([name])[0].spec.name == name
    # too few words a minute; of tokens it was not measured
    unfollowed = takes(name) == "words" or name == "tokens"
    assert (get_change_sensitivity(name) is None) == unfollowed


def test_templates_of_a_network_are_followed_without_its_file():
    assert get_change_sensitivity(f"speaker_{16 * '0'}") == SpeakerModel.follow


def test_what_is_not_asked_for_is_not_heard():
    for name in ("f0_robust", "style"):
        assert name not in defaults()
        assert defaults([name]) == (name,)


def test_the_stronger_network_takes_its_place(monkeypatch):
    ready = {"f0", "phones", "voice", "speaker_ab", "codes"}
    monkeypatch.setattr("monitor.features.registry.ready", lambda name, _: name in ready)
    assert defaults() == ("f0", "phones", "voice")
    assert defaults(["voice", "f0", "codes"]) == ("voice", "f0", "codes")
    assert defaults(["voice", "speaker_ab"]) == ("speaker_ab",)
    ready.remove("speaker_ab")
    assert defaults(["f0", "voice", "speaker_ab"]) == ("f0", "voice")
    assert superseded("voice", ["voice", "speaker_ab"])
    assert not superseded("speaker_ab", ["voice", "speaker_ab"])
