"""Audits of what was measured before: recorded runs, and the results of an attack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from monitor import crowds
from monitor.lab.attacks.attackers import ATTACKERS
from monitor.lab.attacks.extraction import CLEAR
from monitor.lab.attacks.results import AttackResults, AttackRow, list_caveats
from monitor.lab.audit.audit import (
    DEFAULTS,
    STRONGER,
    UNTRIED,
    Audit,
    AuditConfig,
    TestRow,
    get_shortest_seconds,
    report_short_lengths,
    report_unused_features,
    summarise_conditions,
)
from monitor.lab.audit.exposure import (
    LEAST_PEOPLE,
    Exposures,
    list_other_voices,
    measure_runs,
    summarise_lengths,
)
from monitor.lab.audit.sentences import format_plain_method
from monitor.maths.condition import Condition
from monitor.phrases import plural


def audit_runs(
    runs: Sequence[tuple[str, Sequence[Mapping[str, Any]]]], config: AuditConfig = DEFAULTS
) -> Audit:
    """Audit recorded runs of watched speakers, by what their readings say.

    Args:
        runs: by name, records as `monitor.events.schema.read_run` gives them.
        config: what is asked for.

    Raises:
        StoreError: nobody is watched, or runs cannot be put together.
    """
    starts = [records[0] for _, records in runs]
    features = [tuple(start.get("features") or ()) for start in starts]
    shortest = _get_shortest_of_names(features)
    exposures = measure_runs(runs, [t for t in config.lengths if t >= shortest])
    rows = summarise_lengths(
        exposures, config.budget, replicates=config.replicates, seed=config.seed
    )
    ends = [[r for r in records if r["type"] == "reading"][-1:] for _, records in runs]
    readings = [reading for end in ends for reading in end]
    mixed = sum(bool(list_other_voices(records)) for _, records in runs)
    notes = [
        f"In {mixed} of {plural(len(runs), 'run')} another voice or channel was noticed: what came "
        "with it is left out."
    ] * bool(mixed)
    notes += report_short_lengths(rows, min(LEAST_PEOPLE, len(exposures.speakers)))
    notes += dict.fromkeys(
        str(record["text"])
        for _, records in runs
        for record in records
        if record["type"] == "notice" and record.get("level") == "warning"
    )
    notes += dict.fromkeys(
        str(text) for start in starts for text in start.get("notices") or () if text
    )
    used = [name for name in features[0] if all(name in names for names in features)]
    protected = any(start.get("protected") for start in starts)
    not_tested = (
        *report_unused_features(used, config.setup),
        "Linkability as an error rate: runs watch one person each and hear no impostor. Audit the "
        "recordings themselves for it.",
        "Inference: a run tells no attribute of its speaker.",
        *(["The protected side of the runs: test the anonymiser (monitor attack)."] * protected),
        *UNTRIED,
    )
    speech = sum(float(reading["speech"]) for reading in readings)
    return Audit(
        runs[0][0] if len(runs) == 1 else f"{len(runs)} runs",
        "runs", _describe_runs(starts, features, exposures, speech, config), config.among,
        config.budget, exposures, rows,
        conditions=summarise_conditions(Condition.parse(r.get("conditions")) for r in readings),
        not_tested=not_tested, notes=tuple(notes), commands=("monitor show RUN.jsonl --csv",),
        replicates=config.replicates, seed=config.seed,
    )  # fmt: skip


def _describe_runs(
    starts: Sequence[Mapping[str, Any]], features: Sequence[Sequence[str]], exposures: Exposures,
    speech: float, config: AuditConfig,
) -> dict[str, str]:  # fmt: skip
    among = {int(start.get("speakers", 0)) for start in starts}
    prints = sorted({_fingerprint(start) for start in starts} - {""})
    facts = {
        "Speech": f"{plural(len(starts), 'run')} of "
        f"{plural(len(exposures.speakers), 'watched speaker')}, {speech / 60:.1f} min of speech.",
        "Population": f"N = {' or '.join(map(str, sorted(among)))} people enrolled. People are "
        f"singled out of {crowds.crowd_of(config.among)}.",
        "Attackers": "As the runs have them: by "
        + "; ".join(dict.fromkeys(", ".join(names) for names in features)) + ".",
        "Templates": ("from another session than what is tested."
                      if exposures.session == "cross"
                      else "of the same session, in one run at least: a voice is easier to "
                      "recognise so."),
        "Lengths": f"{', '.join(f'{t:g}' for t in exposures.lengths)} s of speech, the first "
        "reading of each run with as much.",
        "Limits": f"95 %, over {config.replicates} resamples of watched speakers "
        f"(seed {config.seed})." if len(exposures.speakers) > 1
        else "95 %, of calibration: one speaker was watched.",
    }  # fmt: skip
    if prints:
        facts["Files"] = f"Templates and rank models: {', '.join(prints)}."
    return facts


def _get_shortest_of_names(features: Sequence[Sequence[str]]) -> float:
    from monitor.features.registry import FEATURES, make, ready

    names = sorted({name for names in features for name in names if name in FEATURES})
    specs = [feature.spec for feature in make([name for name in names if ready(name)])]
    return get_shortest_seconds({spec.name: spec for spec in specs})


def _fingerprint(start: Mapping[str, Any]) -> str:
    fingerprint = start.get("fingerprint")
    if isinstance(fingerprint, Mapping):
        return ", ".join(f"{key} {str(digest)[:12]}" for key, digest in fingerprint.items())
    return str(fingerprint or "")[:12]


# ------------------------------------------------------------------------------------ of an attack

_TRAINED_MORE = (
    "Stronger networks than those named, and attackers who train longer, or on speech of more "
    "people."
)


def audit_attack(results: AttackResults, config: AuditConfig = DEFAULTS) -> Audit:
    """Audit what `monitor attack` found."""
    settings = results.settings
    rows = [row for method in settings.methods for row in results.main(method)]
    for method in settings.methods:
        best = results.strongest(method)
        if best is not None and best not in rows:
            rows.append(best)
    tests = tuple(_make_test(row, results) for row in rows)
    trained = any(ATTACKERS[name].trains for name in settings.attackers)
    background = settings.background
    facts = {
        "Speech": f"{settings.corpus}: {plural(settings.readers, 'reader')}; protected by "
        + (", ".join(format_plain_method(m) for m in settings.methods if m != CLEAR) or "nothing")
        + ".",
        "Population": f"N = {max(row.speakers for row in results.rows)} readers, each compared "
        "with all.",
        "Attackers": f"{', '.join(settings.attackers)}; they recognise voices by "
        f"{', '.join(settings.features)}"
        + (f", and learn from {plural(background, 'reader')} apart." if background else "."),
        "Templates": f"{settings.template_seconds:g} s of speech, "
        + ("of another session." if settings.session == "cross" else "of the same session: a "
           "voice is easier to recognise so."),
        "Lengths": f"Trials of {settings.seconds:g} s of speech.",
        "Limits": "95 %, over resamples of readers.",
    }  # fmt: skip
    not_tested = [
        *(["Inference: no attribute was asked for (monitor attack --attributes)."]
          * (not results.attributes)),
        "Other lengths of speech than these trials'.",
        *(_TRAINED_MORE if line == STRONGER and trained else line for line in UNTRIED),
    ]  # fmt: skip
    return Audit(
        settings.corpus, "attack", facts, config.among, config.budget,
        tests=tests, attributes=results.attributes, not_tested=tuple(not_tested),
        notes=(*results.notes, *list_caveats(results)), problems=results.problems,
        commands=("monitor attack, as it was run: results.json and index.html in its folder",),
    )  # fmt: skip


def _make_test(row: AttackRow, results: AttackResults) -> TestRow:
    settings = results.settings
    feature = row.feature + (", max scoring" if row.scoring == "max" else "")
    segment_seconds = settings.template_seconds / max(settings.main_segments, 1)
    undertrained = ATTACKERS[row.attacker].trains and row.method in results.undertrained
    attacker = row.attacker + " (undertrained)" * undertrained
    return TestRow(
        row.method, attacker, feature, settings.seconds, segment_seconds * row.segments,
        settings.session, row.speakers, row.trials, row.speakers, row.figures,
    )  # fmt: skip
