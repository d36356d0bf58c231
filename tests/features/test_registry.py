from __future__ import annotations

import pytest

from monitor.errors import UsageError
from monitor.features.embeddings import SpeakerModel
from monitor.features.f0 import F0
from monitor.features.registry import FEATURES, get_change_sensitivity, make, takes
from monitor.kinds import Sensitivity
from monitor.protocols import Feature


@pytest.mark.parametrize("name", sorted(FEATURES))
def test_every_name_makes_a_feature_of_that_name(name):
    first, second = make([name, name])
    assert isinstance(first, Feature)
    assert first.spec.name == name
    assert first is not second


def test_a_feature_that_is_made_stays_as_it_is():
    own = F0()
    made = make(["f0", own])
    assert [feature.spec.name for feature in made] == ["f0", "f0"]
    assert made[1] is own is not made[0]


@pytest.mark.parametrize(("name", "hint"), [("f1", "did you mean f0"), ("zzz", "there is f0, ")])
def test_an_unknown_name_is_refused_with_a_hint(name, hint):
    with pytest.raises(UsageError, match=hint) as caught:
        make(["f0", name])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", sorted(FEATURES))
def test_every_feature_says_itself_how_it_is_followed(name):
    if takes(name) == "words" or name == "tokens":
        assert (
            get_change_sensitivity(name) is None
        )  # too few words a minute; of tokens it was not measured
    else:
        assert isinstance(get_change_sensitivity(name), Sensitivity)


def test_what_nobody_registered_inherits_nobody_s_settings():
    assert get_change_sensitivity("codes") is None
    assert get_change_sensitivity("speaker_0123456789abcdef") == SpeakerModel.follow
