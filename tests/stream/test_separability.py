"""Whether two enrolled people can be told apart, where the truth is known."""

from dataclasses import replace

import numpy as np
import pytest

from monitor import Monitor
from monitor.errors import StoreError, UsageError
from monitor.population.population import Population
from monitor.stream import separability
from monitor.stream.notices import setup_notices
from monitor.stream.separability import Separability, Verdict, compare_people
from tests.population.rank_models import population as toys
from tests.stream.households import REFERENCE, household, reader


def verdicts(found: Separability) -> dict[str, Verdict]:
    return {other.name: other.verdict for other in found.nearest}


@pytest.fixture(scope="module")
def planted() -> dict[str, Separability]:
    """Each shipped reader as two people whose speech is drawn from the same: a and b."""
    halves = [
        (f"{number}{half}", [reader(number, half == "b", 2)])
        for number in range(len(REFERENCE))
        for half in "ab"
    ]
    return {one.name: one for one in compare_people(household(*halves))}


def test_equal_voices_are_inseparable_and_others_apart(planted):
    twins = [verdicts(planted[f"{number}a"]).get(f"{number}b") for number in range(50)]
    assert np.mean([verdict == Verdict.INSEPARABLE for verdict in twins]) >= 0.95
    others = [
        verdict
        for one in planted.values()
        for name, verdict in verdicts(one).items()
        if name[:-1] != one.name[:-1]
    ]
    assert sum(verdict == Verdict.INSEPARABLE for verdict in others) <= 0.01 * 100 * 98
    assert sum(one.apart for one in planted.values()) >= 0.95 * 100 * 98
    assert all(one.nearest[0].name[:-1] == one.name[:-1] for one in planted.values())


def test_two_people_are_enough_and_one_is_too_few():
    for other, verdict in ((reader(0, 1, 2), Verdict.INSEPARABLE), (reader(9), Verdict.APART)):
        found = compare_people(household(("ann", [reader(0, 0, 2)]), ("bob", [other])))
        assert [one.nearest[0].verdict for one in found] == [verdict] * 2
        assert found[0].nearest[0].bits == found[1].nearest[0].bits
        assert found[0].own_bits is None
    with pytest.raises(UsageError, match="fewer than two"):
        compare_people(household(("ann", [reader(0)])))


def test_little_speech_is_not_called_inseparable():
    short = household(("ann", [reader(0, 0, 2, 5)]), ("bob", [reader(0, 1, 2, 5)]))
    (other,) = compare_people(short)[0].nearest
    assert (other.verdict, other.seconds) == (Verdict.UNKNOWN, 10.0)


def test_sessions_that_are_unlike_tell_nobody_apart():
    """Between ann's sessions there is as little evidence as between ann and bob."""
    far, alike = reader(9, most=10), [reader(0, 0, 2), reader(0, 1, 2)]
    for sessions, verdict in ((alike, Verdict.APART), ([alike[0], far], Verdict.UNKNOWN)):
        ann, _ = compare_people(household(("ann", sessions), ("bob", [reader(20)])))
        assert ann.nearest[0].verdict == verdict or ann.own_bits is None
    assert ann.own_bits is not None
    assert ann.own_bits < 0


def test_one_against_the_others_is_what_all_against_all_say(planted, monkeypatch):
    people = household(*((str(n), [reader(n, most=8)]) for n in range(6)))
    shares: list[float] = []
    every = compare_people(people, progress=lambda _, share: shares.append(share))
    assert sum(shares) == pytest.approx(1.0)
    assert compare_people(people, "4") == every[4:5]
    monkeypatch.setattr(separability, "MOST_COMPARED", 4)
    with pytest.raises(UsageError, match=r"6 sessions are too many .* --speaker"):
        compare_people(people)
    monkeypatch.setattr(separability, "_CHUNK", 2)
    (one,) = compare_people(people, "4", lambda _, share: shares.append(share))
    assert (one.name, one.apart, one.not_compared) == ("4", every[4].apart, 0)
    assert [other.name for other in one.nearest] == [other.name for other in every[4].nearest]
    assert sum(shares) == pytest.approx(2.0)


def test_templates_of_another_network_are_not_compared():
    people = household(("ann", [reader(0)]), ("bob", [reader(1)]))
    voice = people.features["voice"]
    other = replace(voice, spec=replace(voice.spec, network="ab" * 32))
    foreign = Population(people.speakers, people.offsets, {"voice": other})
    for one, feature in ((foreign, "voice"), (toys(), "f0")):
        with pytest.raises(StoreError, match=f"no cross-session calibration covers {feature}"):
            compare_people(one)


def test_a_run_says_who_cannot_be_told_apart_from_the_watched():
    """What is enrolled twice makes the evidence of either read too low."""
    shipped = REFERENCE.names[0]
    others = REFERENCE.without(shipped)
    for base, names, twins in (
        (others, ("ann",), []),
        (others, ("ann", "twin"), [["twin"]]),
        (REFERENCE, ("ann",), [[shipped]]),  # whom the calibration alone does not contradict
    ):
        people = household(*((name, [reader(0, name == "twin", 2)]) for name in names))
        monitor = Monitor(base.joined(people), watch="ann")
        notices = [each for each in setup_notices(monitor) if each.kind == "inseparable"]
        assert [each.fields["names"] for each in notices] == twins
    assert not any(each.kind == "inseparable" for each in setup_notices(Monitor(REFERENCE)))
