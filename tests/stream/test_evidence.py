"""Sums of any part of a stream that ends now, without processing it again."""

import numpy as np
import pytest

from monitor import Monitor
from monitor.stream.evidence import Evidence
from monitor.stream.totals import FeatureTotals
from monitor.types import TICKS_PER_SECOND, Frames
from tests.stream.streams import heard_by_both, two_features


def equal(one: FeatureTotals, other: FeatureTotals) -> bool:
    """Whether totals are the same, sums of numbers that are no whole ones nearly."""
    same = (one.speech, one.frames, one.usable) == (other.speech, other.frames, other.usable)
    return same and all(np.allclose(one.totals[n], other.totals[n]) for n in one.totals)


def evidence_of(whole: Frames) -> Evidence:
    monitor = Monitor(two_features(), watch="s2")
    monitor.push(whole)
    return monitor._stream.evidence


@pytest.mark.parametrize("since", [0, 100, 130, 400, 899])
def test_totals_subtract(since):
    whole = heard_by_both(9)
    begins = since - since % TICKS_PER_SECOND
    part = evidence_of(whole.between(begins, 900))
    assert equal(evidence_of(whole).since(since), part.own_totals)


def test_a_window_reads_as_a_stream_of_its_own():
    monitor, alone = (Monitor(two_features(), watch="s2") for _ in range(2))
    monitor.push(heard_by_both(9))
    alone.push(heard_by_both(9).between(300, 900))
    alone_again = Monitor(monitor.plan)
    alone_again.resume_from(monitor._stream.evidence.since(300))
    ours, theirs = alone_again.standing(), alone.standing()
    assert ours.bits == pytest.approx(theirs.bits)
    assert np.allclose(ours.posterior, theirs.posterior)


def test_a_checkpoint_keeps_the_past():
    monitor = Monitor(two_features(), watch="s2")
    monitor.push(heard_by_both(9))
    again = Monitor(monitor.plan)
    again.restore(*monitor.state())
    for since in (0, 250, 900):
        assert equal(again._stream.evidence.since(since), monitor._stream.evidence.since(since))
