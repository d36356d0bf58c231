"""The shipped population keeps what the README says of it."""

from __future__ import annotations

from itertools import combinations

from monitor.population.population import Population

FEATURES = ("f0", "phones", "identity")


def test_every_set_of_features_has_a_law_for_both_kinds_of_session():
    laws = Population.reference().laws
    for size in (1, 2, 3):
        for names in combinations(FEATURES, size):
            for session in ("same", "cross"):
                law = laws.find(names, session)
                assert law is not None
                assert {3.0, 10.0, 30.0, 60.0, 120.0} <= set(law.lengths)


def test_a_joint_of_features_discloses_no_less_than_the_best_of_them():
    rows = [row for law in Population.reference().laws for row in law.rows if row["T"] >= 3]
    places = {(r["feature"], r["session"], r["T"], r["D"]): r for r in rows}
    joint = [place for place in places if "+" in place[0]]
    assert len(joint) > 200
    for feature, *place in joint:
        mine = places[feature, *place]
        for each in (places[alone, *place] for alone in feature.split("+")):
            if each["speakers"] == mine["speakers"]:  # else others were tested
                assert mine["held_out_local_bits"] > each["held_out_local_bits"] - 0.05


def test_the_best_guess_is_calibrated():
    for law in Population.reference().laws:
        if "identity" in law.features:
            assert all(row["calibration_error"] < 0.08 for row in law.rows if row["T"] >= 3)
