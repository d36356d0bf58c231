from __future__ import annotations

from dataclasses import replace

import pytest

from monitor.lab.attacks.results import AttackRow, format_headline, list_caveats, method_name
from monitor.lab.report.model import Figure
from tests.lab.attacks.made import METHODS, results, row


def test_the_headline_is_the_strongest_attackers_worst_method_first():
    lines = format_headline(results())
    assert lines == [
        "mcadams:0.8: 3.10 bits (2.60 to 3.60) of 4.00 to the strongest attacker tried "
        "(lazy-informed, voice, 3 segments enrolled, max scoring).",
        "`mine --strong`: 0.05 bits (-0.45 to 0.55) of 4.00 to the strongest attacker tried "
        "(lazy-informed, voice, 5 segments enrolled): no more than chance reads (0.10 bits).",
        "Unprotected: 3.50 bits (3.00 to 4.00) (ignorant, voice, 5 segments enrolled).",
    ]


def test_only_an_attacker_who_does_not_know_the_anonymiser_is_no_measure():
    lines = format_headline(results(attackers=("ignorant",)))
    assert all("no measure of protection" in line for line in lines[:-1])
    assert not any("strongest" in line for line in lines)
    assert "no measure" not in lines[-1]  # of clear speech


def test_unprotected_speech_alone_has_a_headline():
    (line,) = format_headline(results([row("none", "ignorant", 3.5)], methods=("none",)))
    assert line.startswith("none: 3.50 bits")


def test_what_stands_at_the_ceiling_is_said_to():
    few = [row("none", "ignorant", 2.0), row("mcadams:0.8", "ignorant", 1.5),
           row("whisper", "ignorant", 1.95)]  # fmt: skip
    few = [replace(each, speakers=4) for each in few]
    last = format_headline(results(few, methods=("none", "mcadams:0.8", "whisper")))[-1]
    assert last == (
        "At the ceiling: unprotected speech, whisper. Among 4 readers no more than 2.00 bits can "
        "be shown, and methods that stand there cannot be told apart; test with ten readers or "
        "more."
    )
    (_, last) = format_headline(results([row("none", "ignorant", 3.9)], methods=("none",)))
    assert last.endswith("test with more readers.")  # of 16
    assert not any("ceiling" in line for line in format_headline(results()))


@pytest.mark.parametrize(
    ("method", "name"),
    [
        ("mcadams:0.8", "mcadams:0.8"),
        (METHODS[2], "`mine --strong`"),
        ("command:/venv/bin/python /home/me/x.py", "`python x.py`"),
        ("command:'unclosed", "`'unclosed`"),
    ],
)
def test_a_program_is_called_by_its_name_and_not_its_place(method, name):
    assert method_name(method) == name


@pytest.mark.parametrize(
    ("rows", "more", "told"),
    [
        ([], {"session": "same"}, "parts of one session"),
        ([], {}, "Not tried: semi-informed"),
        (
            [row("none", "ignorant", 3.0, rank_model="shipped, of clear speech")],
            {},
            "weighed by the shi",
        ),
        ([row("none", "ignorant", 3.0, silent=9)], {}, "nothing was extracted of voice under none"),
        ([row("none", "ignorant", 3.0, complete=9)], {}, "Not all readers have 5 segments"),
        ([], {}, "with 16 readers a difference within the limits is none"),
    ],
)
def test_what_a_reader_has_to_know_is_said(rows, more, told):
    assert any(told in line for line in list_caveats(results(rows, **more)))


def test_nothing_is_said_that_is_not_so():
    said = " ".join(list_caveats(results(attackers=("ignorant", "lazy-informed", "semi-informed"))))
    for wrong in ("one session", "Not tried", "shipped", "nothing was heard", "Not all"):
        assert wrong not in said


def test_features_weighed_together_that_learn_less_than_one_of_them_are_told():
    """The headline is the stronger's; the note says that it is a single feature."""
    rows = [
        row("none", "ignorant", 3.24),
        row("none", "ignorant", 1.2, feature="f0"),
        row("none", "ignorant", 2.94, feature="joint"),
    ]
    found = results(rows, methods=("none",))
    assert format_headline(found)[0].startswith("none: 3.24 bits")
    (told,) = [line for line in list_caveats(found) if "joint gives" in line]
    assert "joint gives 2.94 bits, voice alone 3.24: go by voice" in told
    better = results([rows[0], replace(rows[2], figures=row("none", "x", 3.4).figures)])
    assert not any("joint gives" in line for line in list_caveats(better))


def test_a_calibration_that_contradicts_the_ranks_is_told():
    def read(alid: float) -> AttackRow:
        made = row("none", "ignorant", 3.0)
        more = {
            "lid.alid_bits": Figure("a", "ALID", alid, "bits", low=-7.1, high=3.5),
            "srd.idr": Figure("i", "IdR", 0.82, "share"),
        }
        return replace(made, figures={**made.figures, **more})

    (told,) = [line for line in list_caveats(results([read(-0.687)])) if "ALID" in line]
    assert "none, ignorant, voice" in told
    assert "16 readers" in told
    assert not any("ALID" in line for line in list_caveats(results([read(2.6)])))


def test_an_attacker_who_does_not_even_know_clear_voices_is_undertrained():
    found = replace(results(), clear_bits={"mcadams:0.8": (2.0, 3.5), METHODS[2]: (3.4, 3.5)})
    assert found.undertrained == ("mcadams:0.8",)
    (told,) = [line for line in list_caveats(found) if "undertrained" in line]
    assert "2.00 bits where the shipped one tells 3.50" in told
