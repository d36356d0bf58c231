from __future__ import annotations

from itertools import product

import pytest

from monitor.errors import UsageError
from monitor.maths.scores import window_starts

LONGEST = 20


def units(start, length, available):
    return {(start + i) % available for i in range(length)}


def distance(test, template, available):
    """Fewest steps, either way around, from a unit of one to a unit of the other."""
    return min(min((a - b) % available, (b - a) % available) for a in test for b in template)


def settings(available):
    """Every (T, D, S) that fits."""
    for test, template in product(range(1, available), repeat=2):
        if test + template <= available:
            yield from ((test, template, start) for start in range(available))


def test_test_and_template_never_overlap_and_lie_as_far_apart_as_they_can():
    count = 0
    for available in range(2, LONGEST + 1):
        for test, template, start in settings(available):
            first, second = window_starts(start, test, template, available)
            a, b = units(first, test, available), units(second, template, available)
            assert first == start
            assert not a & b
            # the rest lies on both sides: the nearer one can have half of it at most
            assert distance(a, b, available) == (available - test - template) // 2 + 1
            if start == 0 and available <= 12:
                others = [units(place, template, available) for place in range(available)]
                assert distance(a, b, available) == max(
                    distance(a, other, available) for other in others if not a & other
                )
            count += available == LONGEST
    assert count == 3800


def test_the_printed_offset_overlaps_in_1755_of_3800_settings():
    def printed(start, test, template):
        gap = (LONGEST - start - test) // 2
        return units(start, test, LONGEST) & units(start + test + gap, template, LONGEST)

    overlaps = [bool(printed(s, t, d)) for t, d, s in settings(LONGEST)]
    assert (sum(overlaps), len(overlaps)) == (1755, 3800)


@pytest.mark.parametrize(("test", "template"), [(6, 5), (0, 4), (4, 0), (-1, 4)])
def test_what_does_not_fit_is_refused(test, template):
    with pytest.raises(UsageError, match="do not fit into 10"):
        window_starts(0, test, template, 10)
