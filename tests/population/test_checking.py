"""Stores that look whole and hold nonsense."""

from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from monitor import Population
from monitor.errors import StoreError
from monitor.kinds import EMBEDDING, HISTOGRAM, FeatureSpec
from monitor.maths.condition import UNLIKE
from monitor.maths.evidence import ConditionEffect, ConditionEffects
from monitor.population.cohort import Cohort, FeatureTemplates
from monitor.population.people import SourceNote, Speaker
from monitor.population.population import load_rank_models, save_rank_models
from monitor.population.rank_model import Maxima, RankModels
from monitor.population.store import read_store, write_store
from tests.population.rank_models import evidence_model, some_rank_model

GONE = object()
NAN, INF = np.nan, np.inf
MODEL, MAXIMA, EVIDENCE = "rank_model/0/", "rank_model/0/maxima/", "rank_model/0/evidence/"
MARKS = "people/source/landmarks"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The header and the arrays of a store in which everything is that can be in one."""
    generator = np.random.default_rng(0)
    counts = generator.integers(1, 50, (4, 6)).astype(np.uint16)
    sums = generator.uniform(-0.5, 0.5, (4, 3)).astype(np.float16)
    features = {
        "f0": FeatureTemplates(FeatureSpec("f0", HISTOGRAM, 6, 0.01), counts),
        "voice": FeatureTemplates(FeatureSpec("voice", EMBEDDING, 3, 3.0, network="ab" * 32), sums),
    }
    cohort = Cohort(np.array([3.0, 12.5, 9.9, 8.0]), features, "Readers.")
    model = some_rank_model(
        ("f0", "voice"),
        template_lengths=(10.0, 60.0),
        similarities=("log-likelihood", "embedding-cosine"),
        replicates=2,
        maxima=Maxima(
            ("closed_set_bits", "gain_bits"),
            np.array([10.0, 60.0]),
            np.array([[[1, 2], [0.5, NAN], [2, 2]], [[3, 3], [1, NAN], [2.5, 3]]], np.float16),
            np.array([700.0, 60.0, 300.0]),
            ("ann", "bob", "cem"),
            100.0,
        ),
    )
    effect = ConditionEffect(
        np.linspace(-1, 1, UNLIKE), np.zeros((2, UNLIKE)), np.arange(1.0 * UNLIKE)
    )
    effects = ConditionEffects(np.array([5.0, 20.0]), (effect, effect))
    evidence = replace(evidence_model(model, cohort, replicates=2), conditions=effects)
    sound = np.array([9.0, 4000, 20, 0.2, 0, -20] * 2, "<f4")
    note = SourceNote("a.wav", "monday", ("file:1",), 0.0, 20.0, np.array([1, 2, 3], "<u2"))
    made = Population(
        [Speaker("ann", (note,), sound, (1, 1)), Speaker("bob")],
        np.array([0, 2, 4]),
        features,
        RankModels([replace(model, evidence=evidence)]),
        cohort=cohort,
    )
    path = tmp_path_factory.mktemp("whole") / "whole.npz"
    made.save(path)
    read(path)
    return read_store(path, "population")


def read(path: Path) -> None:
    """All of a store: rank models and cohort are read when they are asked for."""
    made = Population.load(path)
    assert len(list(made.rank_models)) == 1
    assert made.cohort is not None


def put(where, value, header, arrays):
    """In the place of an array, or of what ``a.0.b`` is in the header; a function makes it anew."""
    holder, key = arrays, where
    if where not in arrays:
        *path, key = (int(part) if part.isdigit() else part for part in where.split("."))
        holder = header
        for part in path:
            holder = holder[part]
    if value is GONE:
        del holder[key]
    else:
        holder[key] = value(holder[key]) if callable(value) else value


def at(place, value):
    """One number of an array changed."""

    def change(array):
        made = array.astype(np.result_type(array, np.asarray(value)))
        made[place] = value
        return made

    return change


def full(value):
    return lambda array: np.full(array.shape, value, np.result_type(array, np.float32))


WRONG = [
    *((name, GONE, "incomplete") for name in
      ("speakers", "features", "rank_models", "mismatched", "about", "slice_seconds", "offsets",
       "slices/f0", "cohort/voice", "speakers.0.sources.0.hashes", "features.f0.kind",
       "speakers.1", MODEL + "beta", MODEL + "floor", MAXIMA + "values", MAXIMA + "seconds",
       MAXIMA + "horizons", EVIDENCE + "slopes", EVIDENCE + "intercepts", EVIDENCE + "area")),
    # people
    *(("speakers.0.name", name, "cannot be printed") for name in ("a\x1b[2Jb", " ", "a" * 201)),
    ("speakers.1.name", "ann", "same name"),
    ("speakers.0.sources.0.label", "a\nb", "cannot be printed"),
    ("speakers.0.sources.0.session", "m\x07", "cannot be printed"),
    ("speakers.0.sources.0.start_seconds", -1.0, "not a pair of seconds"),
    *(("speakers.0.days", wrong, "enrolment days|incomplete") for
      wrong in (["2026-02-30"] * 2, ["20260201"] * 2, [1, 2], ["2026-02-02", "2026-02-01"], [""])),
    *(("speakers.0.sessions", wrong, "do not match its slices") for wrong in
      ([1, 2], [3, -1], [2.0], ["a"], [True, 1])),
    (MARKS + "/rows", lambda rows: rows[:-1], "does not match the enrolled"),
    (MARKS, lambda marks: marks.astype("<f8"), "does not match the enrolled"),
    *(("people/speaker/sound", at(place, np.float32(value)), "sound cond") for place, value in
      ((1, INF), (0, -1), (0, NAN))),
    ("people/speaker/sound", lambda sound: sound[:, None], "incomplete"),
    # templates
    ("offsets", lambda offsets: offsets[::-1].copy(), "do not match"),
    ("offsets", lambda offsets: offsets + 1, "do not match"),
    ("slice_seconds", 2.0, "slices of 2.0 s"),
    ("slices/f0", lambda slices: slices[:, :5], "must have shape"),
    *(("slices/voice", change, "finite sums") for change in
      (at((1, 1), np.float16(NAN)), at((1, 1), np.float16(INF)),
       lambda slices: slices.astype(np.float32) * 9e30, lambda slices: slices.astype(int))),
    *(("slices/f0", change, "counts from 0") for change in
      (at((1, 1), 1 << 62), at((1, 1), -1), lambda slices: slices + 0.5,
       lambda slices: slices > 3)),
    *(("features.f0." + name, value, words) for name, value, words in
      (("frame_seconds", 0.0, "lasts 0.0 s"), ("frame_seconds", "1", "lasts .1. s"),
       ("kind", "levels", "unknown kind"), ("kind", "picture", "unknown kind"),
       ("kind", ["histogram"], "unknown kind"), ("size", 0, "have size 0"),
       ("size", "6", "have size '6'"), ("size", True, "have size True"),
       ("network", "no sha256", "not a sha256"), ("rate", 8000, "unknown keys"))),
    # rank models
    *((MODEL + name, full(value), name) for name, value in
      (("alpha", -1.0), ("beta", NAN), ("beta", 1e30),
       ("floor", 1.5), ("weights", -0.1), ("weights", INF), ("open_set", INF), ("lengths", INF))),
    *((MODEL + "alpha", change, "incomplete") for change in
      (full(INF), full(NAN), lambda alpha: alpha[1:])),
    (MODEL + "weights", lambda weights: weights[..., :1], "incomplete"),
    (MODEL + "binomial", lambda binomial: binomial.astype(np.int8), "incomplete"),
    *((MODEL + "lengths", np.array(wrong), "incomplete") for wrong in
      ([0.5, 10.0, 2.0, 60.0], [0.0, 2.0, 10.0, 60.0], [5e-324, 2.0, 10.0, 60.0])),
    (MODEL + "template_lengths", np.array([-10.0, 60.0]), "incomplete"),
    *(("rank_models.0." + name, value, "incomplete") for name, value in
      (("session", "sometimes"), ("features", ["f0", "f\x1b0"]), ("speakers", 0),
       ("similarities", ["log-likelihood"]),
       ("candidates", -3), ("candidates", 1e300), ("left_out", ["a\x1bb"]), ("left_out", 3),
       ("gamma", 1))),
    # maxima of others' streams
    *((MAXIMA + "values", change, "incomplete") for change in
      (lambda values: values[:, :2], lambda values: values[:1], lambda values: values[..., ::-1],
       full(INF), full(1e9), lambda values: np.ones(values.shape, np.int8))),
    *((MAXIMA + "horizons", np.array(wrong), "incomplete") for wrong in
      ([10.0, 10.0], [0.0, 60.0], [10.0, NAN], [10, 60])),
    *((MAXIMA + "seconds", np.array([700.0, wrong, 300.0]), "incomplete") for wrong in
      (0.0, NAN, INF)),
    *(("rank_models.0.maxima." + name, value, "incomplete") for name, value in
      (("fields", ["bits", "bits"]), ("fields", ["bits", "a\x1bb"]), ("fields", 3),
       ("speakers", ["ann", "ann", "cem"]), ("speakers", ["ann", "b\nb", "cem"]),
       ("speakers", []), ("template_seconds", 0.0), ("template_seconds", "100"),
       ("template_seconds", True), ("template_seconds", None))),
    # evidence
    *((EVIDENCE + name, change, "incomplete") for name, change in
      (("slopes", lambda x: -x), ("slopes", lambda x: x[..., 0]), ("slopes", lambda x: x[:1]),
       ("support", lambda x: -x - 1), ("support", full(NAN)), ("area", lambda x: x + 1),
       ("intercept", lambda x: x * 1e6), ("intercept", lambda x: x[:1]),
       ("intercept", full(NAN)), ("intercept", lambda x: x.astype(int)),
       ("slope_draws", lambda x: x.astype(int)))),
    *(("rank_models.0.evidence", change, "incomplete") for change in
      (lambda x: x[:1], lambda x: ["not a mark", *x[1:]], lambda x: [None, *x[1:]])),
    (EVIDENCE + "conditions", at((0, 0, 1), NAN), "condition"),
    (EVIDENCE + "conditions", at((0, 1, 1), -1.0), "condition"),
    (EVIDENCE + "conditions", lambda x: x[:, :, :6], "condition"),
    *((EVIDENCE + "condition_lengths", np.array(wrong, "<f4"), "condition") for wrong in
      ([5.0], [20.0, 5.0], [0.0, 5.0], [])),
    # cohorts
    ("cohort", {"features": {}, "about": ""}, "incomplete"),
    ("cohort.sha256", 3, "incomplete"),
    ("cohort/f0", at((0, 0), 1), "it has changed"),
    ("cohort.features.f0.kind", "levels", "incomplete"),
    ("cohort.features.voice.network", "cd" * 32, "made differently from its templates"),
]  # fmt: skip


@pytest.mark.parametrize(("where", "value", "words"), WRONG)
def test_what_no_voices_give_is_refused_in_one_line(tmp_path, whole, where, value, words):
    path = tmp_path / "p.npz"
    header, arrays = deepcopy(whole[0]), dict(whole[1])
    put(where, value, header, arrays)
    del header["kind"], header["schema"]
    write_store(path, "population", header, arrays)
    with pytest.raises(StoreError, match=words) as caught, np.errstate(all="ignore"):
        read(path)
    assert str(caught.value).startswith((f"{path}: ", f"{path} is "))
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"seconds": np.ones(3)}, "differ in their number of speakers"),
        ({"seconds": np.ones((1, 4))}, "lacks its seconds"),
        ({"seconds": np.full(4, NAN)}, "invalid speech seconds"),
        ({"seconds": -np.ones(4)}, "invalid speech seconds"),
        ({"features": {}}, "lacks its seconds, or its features"),
        ({"f0": lambda counts: counts - 9.5}, "counts from 0"),
        ({"voice": lambda directions: directions * INF}, "finite sums"),
        ({"voice": lambda directions: directions * np.float16(9)}, "no valid directions"),
    ],
)
def test_what_is_no_cohort_is_refused(whole, changed, words):
    kinds = {"f0": (HISTOGRAM, 6, 0.01), "voice": (EMBEDDING, 3, 3.0)}
    features = {
        name: FeatureTemplates(
            FeatureSpec(name, *kind), changed.get(name, np.asarray)(whole[1][f"cohort/{name}"])
        )
        for name, kind in kinds.items()
    }
    with np.errstate(invalid="ignore"), pytest.raises(StoreError, match=words):
        Cohort(changed.get("seconds", np.ones(4)), changed.get("features", features))


def test_who_has_nothing_of_a_feature_is_known_and_of_none_is_refused(tmp_path, whole):
    path, (header, arrays) = tmp_path / "p.npz", whole
    header, arrays = dict(header), dict(arrays)
    del header["kind"], header["schema"]
    for silent in ("slices/f0", "slices/voice"):
        arrays[silent] = arrays[silent] * (np.arange(4) > 1)[:, None].astype(arrays[silent].dtype)
        write_store(path, "population", header, arrays)
        if silent == "slices/f0":
            made = Population.load(path)
            assert (made.empty("f0"), made.empty("voice")) == (("ann",), ())
    with pytest.raises(StoreError, match="template of ann is empty"):
        Population.load(path)


def test_rank_models_in_a_file_of_their_own_are_checked_as_well(tmp_path):
    path = tmp_path / "rank_models.npz"
    save_rank_models(path, RankModels([some_rank_model()]))
    header, arrays = read_store(path, "rank_model")
    for content, less in (({}, ()), ({"rank_models": header["rank_models"]}, ("alpha",))):
        kept = {name: array for name, array in arrays.items() if not name.endswith(tuple(less))}
        write_store(path, "rank_model", content, kept if less else arrays)
        with pytest.raises(StoreError, match="is incomplete") as caught:
            list(load_rank_models(path)[0])
        assert str(caught.value).startswith(f"{path} is incomplete")
    with pytest.raises(StoreError, match="at least one resample"):
        some_rank_model(replicates=0)
    with pytest.raises(StoreError, match="another grid"):
        some_rank_model(("f0", "phones"), evidence=evidence_model(some_rank_model()))
