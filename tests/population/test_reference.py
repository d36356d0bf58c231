"""The shipped population keeps what docs/features.md says of it."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from benchmarks.build_reference import OWN, SETS
from monitor import Monitor
from monitor.features.registry import make
from monitor.population.population import Population
from monitor.population.reference import demo_frames
from monitor.sources.frames import FramesFile

PEOPLE = Population.reference()
ROWS = [row for law in PEOPLE.laws for row in law.rows]


def test_every_set_that_people_can_have_has_a_law_for_both_kinds_of_session():
    assert len(SETS) == 11
    for together in (OWN, ("f0", "phones", "identity")):
        for size in (1, 2, 3):
            for names in combinations(together, size):
                for session in ("same", "cross"):
                    law = PEOPLE.laws.find(names, session)
                    assert law is not None
                    assert {3.0, 10.0, 30.0, 60.0, 120.0} <= set(law.lengths)


@pytest.mark.parametrize("name", OWN)
def test_templates_frames_and_laws_are_by_the_networks_of_this_package(name):
    (own,) = make([name])
    mark = own.spec.network
    assert PEOPLE.specs[name].network == mark
    assert PEOPLE.cohort is not None
    assert PEOPLE.cohort.specs[name].network == mark
    assert FramesFile(demo_frames()).brings.tracks[name].network == mark
    assert {law.network(name) for law in PEOPLE.laws if name in law.features} == {mark}


def test_who_trained_the_network_of_phones_teaches_no_law_of_it():
    for law in PEOPLE.laws:
        if "phones" not in law.features:
            assert law.left_out == ()
            assert law.speakers == (50 if law.session == "same" else 19)
            continue
        assert len(set(law.left_out)) == 28
        assert set(law.left_out) < set(PEOPLE.names)
        assert law.speakers == (22 if law.session == "same" else 18)
        assert law.candidates == 50


def test_it_holds_a_cohort_of_others():
    cohort = PEOPLE.cohort
    assert cohort is not None
    assert len(cohort) == 219
    assert cohort.features.keys() == PEOPLE.features.keys()
    assert all(each.slices.any(axis=1).all() for each in cohort.features.values())
    assert 8 < np.median(cohort.seconds) < 16
    files = Path(demo_frames()).parent
    assert (files / "population.npz").stat().st_size < 4e6


def test_a_joint_of_features_discloses_hardly_less_than_the_best_of_them():
    """Where both were learnt from the same readers."""
    bits = {
        (r["feature"], r["session"], r["T"], r["D"]): (r["held_out_local_bits"], r["speakers"])
        for r in ROWS
        if 3 <= r["T"] <= 120
    }
    compared = 0
    for (feature, *place), (joint, speakers) in bits.items():
        alone = [bits[each, *place] for each in feature.split("+") if (each, *place) in bits]
        best = max((b for b, readers in alone if readers == speakers), default=-np.inf)
        compared += "+" in feature and bool(np.isfinite(best))
        assert joint > best - 0.1  # what two features cost on a score of readers
    assert compared > 200


def test_the_best_guess_is_calibrated():
    for law in PEOPLE.laws:
        if "identity" in law.features:
            assert all(row["calibration_error"] < 0.08 for row in law.rows if row["T"] >= 3)


def test_how_high_others_get_is_known_under_every_law():
    """So that a rule may ask for 5 % false alarms in streams of ten minutes, as the docs do."""
    for law in PEOPLE.laws:
        assert law.maxima is not None
        assert not set(law.maxima.speakers) & set(law.left_out)
        assert law.maxima.template_seconds == PEOPLE.scoring().seconds
    monitor = Monitor(PEOPLE, ("f0", "phones", "voice"), watch=PEOPLE.names[0])
    for field in ("evidence_bits", "bits", "f0.local_bits"):
        quote = monitor.false_alarms(field, 0.05, 600.0)
        assert 0 < quote.bits < quote.most_bits
        assert 19 <= quote.speakers <= len(PEOPLE)
