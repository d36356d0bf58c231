"""Arrays of other libraries are read, and what hides values or is no number is refused."""

import array
import inspect
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

pytest.importorskip("torch", reason="needs the extra training")
pytest.importorskip("ml_dtypes", reason="needs the extra onnx")

import ml_dtypes
import torch
from scipy import sparse

import monitor.lab.evaluation as evaluation
from monitor import Monitor, Population, measure
from monitor.arrays import names_or_numbers, real_numbers, sampling_rate
from monitor.errors import MonitorError, SourceError, UsageError
from monitor.kinds import EMBEDDING, FeatureSpec
from monitor.lab.evaluation.calibration import local_information_bits, normalise_rows
from monitor.lab.evaluation.lid import statistics
from monitor.lab.evaluation.verbal import degrees_of_support
from monitor.maths.rank_models import fit, fit_many
from monitor.maths.ranks import rank_bounds, rank_histogram, rank_histograms
from monitor.population.cohort import Cohort, FeatureTemplates
from monitor.sources import Samples, write_frames
from monitor.types import Block, Frames, Track
from tests.stream.streams import two_features


def hidden(values: Any, *places: int) -> Any:
    """A masked array."""
    whole = np.ma.array(values)
    whole.mask = np.isin(np.arange(whole.size), places).reshape(whole.shape)
    return whole


FRAME = pd.DataFrame({"a": [1.5, 2.0], "b": [1, 3]})
VALUES = [[1.5, 1.0], [2.0, 3.0]]
READ = {
    "list": VALUES,
    "tuple": tuple(map(tuple, VALUES)),
    "objects": np.array(VALUES, object),
    "decimals": [[Decimal("1.5"), 1], [2, 3.0]],
    "no mask": np.ma.array(VALUES),
    "arrays": [np.array(row) for row in VALUES],
    "tensor": torch.tensor(VALUES),
    "gradient": torch.tensor(VALUES, requires_grad=True),
    "bfloat16": torch.tensor(VALUES, dtype=torch.bfloat16),
    "float8": torch.tensor(VALUES).to(torch.float8_e5m2),
    "tensors": [torch.tensor(row, requires_grad=True) for row in VALUES],
    "bfloat16 of NumPy": np.array(VALUES, ml_dtypes.bfloat16),
    "frame": FRAME,
    "convert_dtypes": FRAME.convert_dtypes(),
    "Float64": FRAME.astype("Float64"),
    "pyarrow": FRAME.convert_dtypes(dtype_backend="pyarrow"),
    "table": pa.table(FRAME),
    "memoryview": memoryview(np.array(VALUES).tobytes()).cast("d", (2, 2)),
}  # fmt: skip
REFUSED = {
    "masked": (hidden(VALUES, 1), "masked"),
    "masked rows": ([hidden([1.0, 2.0], 1)] * 2, "masked"),
    "a masked value": ([1.0, np.ma.masked], "masked"),
    "a masked value within": ([[1.0, np.ma.masked]], "masked"),
    "sparse": (sparse.csr_array(np.eye(2)), "sparse"),
    "sparse tensor": (torch.eye(2).to_sparse(), "sparse"),
    "complex": (np.array([1j]), "complex"),
    "complex tensor": (torch.ones(2, dtype=torch.complex64), "complex"),
    "text": (["1"], "text"),
    "contain text": (np.array([1.0, "2"], object), "text"),
    "StringDType": (np.array(["1"], np.dtypes.StringDType()), "text"),
    "time spans": (pd.Series(pd.to_timedelta([1, 2], unit="s")), "time spans"),
    "dates": (np.array(["2026-01-01"], "M8[D]"), "dates"),
    "records": (np.zeros(2, [("a", "f4")]), "records"),
    "structs": (pa.array([{"a": 1}]), "dict"),
    "ragged": ([[1.0], [1.0, 2.0]], "cannot be read"),
    "bytes": (b"\0\0", "bytes"),
    "nothing": (None, "NoneType"),
    "a generator": ((x for x in [1.0]), "generator"),
    "void": (np.zeros(2, "V3"), "V3"),
}


@pytest.mark.parametrize("values", READ.values(), ids=READ)
def test_numbers_of_any_library_are_read(values):
    assert real_numbers(values, "scores").tolist() == VALUES


@pytest.mark.parametrize(("values", "word"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_number_is_refused_in_a_sentence(values, word):
    with pytest.raises(UsageError, match=rf"^scores .*{word}.*: (give|leave these out)") as caught:
        real_numbers(values, "scores")
    assert "\n" not in str(caught.value)


def test_an_array_is_not_copied_and_keeps_its_type():
    whole = np.arange(3, dtype=np.int16)
    assert real_numbers(whole, "x") is whole
    assert real_numbers(pd.Series(whole), "x").dtype == np.int16
    assert real_numbers(pd.array([1, 2], "Int16"), "x").dtype == np.int16
    missing = pd.Series([1, None, 3], dtype="Int64")
    assert np.isnan(real_numbers(missing, "x")).tolist() == [False, True, False]


NAMES = ["ann", "bob", "ann"]


@pytest.mark.parametrize(
    "values",
    [
        NAMES, np.array(NAMES), np.array(NAMES, object), np.array(NAMES, "S"),
        np.array(NAMES, np.dtypes.StringDType()), pd.Categorical(NAMES), pd.Series(NAMES),
        pd.Series(NAMES, dtype="string"), pd.Index(NAMES), pa.array(NAMES),
        pa.array(NAMES, pa.string_view()), pa.array(NAMES).dictionary_encode(),
        pa.chunked_array([NAMES[:1], NAMES[1:]]), [name.encode() for name in NAMES],
    ],
)  # fmt: skip
def test_names_of_any_type_are_read(values):
    assert names_or_numbers(values, "labels").tolist() == NAMES


@pytest.mark.parametrize(
    "values",
    [
        [1, 0], [1.0, 0.0], np.array([1, 0], object), pd.Series([1, 0], dtype="Int64"),
        pd.Categorical([1, 0]), torch.tensor([1, 0]), pa.array([1, 0]),
    ],
)  # fmt: skip
def test_whole_numbers_of_any_type_are_read(values):
    found = names_or_numbers(values, "labels")
    assert found.dtype.kind in "iu"
    assert found.tolist() == [1, 0]


@pytest.mark.parametrize(
    "values",
    [
        pd.Series([1, None], dtype="Int64"), pd.Series(["a", None], dtype="string"), ["a", None],
        [0.5], [True], [b"\xff"], hidden([1, 2], 1), np.array([["a"]]), "ann", None,
        np.array(["2026-01-01"], "M8[D]"), pd.Series([1.0, np.nan]),
    ],
)  # fmt: skip
def test_a_label_that_is_missing_or_neither_is_refused(values):
    with pytest.raises(UsageError, match=r"^labels"):
        names_or_numbers(values, "labels")


@pytest.mark.parametrize("rate", [16000, 16000.0, "16000", np.float32(16000), torch.tensor(16000)])
def test_a_rate_is_a_whole_number(rate):
    assert sampling_rate(rate) == 16000


@pytest.mark.parametrize("rate", [16000.5, "x", float("nan"), float("inf"), True, [1, 2], None])
def test_another_rate_is_refused(rate):
    with pytest.raises(UsageError, match="invalid rate"):
        sampling_rate(rate)


SOUND = (np.random.default_rng(0).normal(size=32_000) / 10).astype(np.float32)
WHOLE = (SOUND * 32767).astype(np.int16)


@pytest.mark.parametrize(
    "samples",
    [
        torch.from_numpy(SOUND), torch.from_numpy(SOUND.copy()).requires_grad_(), SOUND.tolist(),
        pd.Series(SOUND), pd.Series(WHOLE), memoryview(WHOLE.tobytes()).cast("h"),
        array.array("h", WHOLE.tolist()), pa.array(SOUND), WHOLE,
    ],
    ids=lambda samples: type(samples).__name__,
)  # fmt: skip
def test_samples_of_any_library_are_measured_alike(samples):
    expected = measure(SOUND, rate=16_000, features=["f0"]).readings
    found = measure(samples, rate=16_000.0, features=["f0"])
    assert len(found.readings) == len(expected)
    assert found.readings[-1].speech == pytest.approx(expected[-1].speech, abs=0.1)
    assert len(list(Monitor(Population.reference(), ["f0"]).stream(samples, rate="16000"))) == 2
    assert measure((samples, "16000"), features=["f0"]).headline == found.headline


@pytest.mark.parametrize(
    ("recording", "rate", "words"),
    [
        (np.ma.array(SOUND, mask=SOUND > 0.3), 16_000, "samples contain masked"),
        (WHOLE.tolist(), 16_000, "samples are int64: give floats"),
        (WHOLE.astype(np.int64), 16_000, "samples are int64"),
        (WHOLE.tobytes(), 16_000, "samples are bytes: give an array"),
        (SOUND.astype(complex), 16_000, "complex"),
        (torch.from_numpy(SOUND)[None], 16_000, "channels first"),
        (torch.from_numpy(SOUND), None, "needs its rate"),
        (SOUND, "fast", "invalid rate 'fast'"),
        ((16_000, SOUND), None, "samples come first"),
        ("talk.wav", 16_000, "a source has its own"),
    ],
)
def test_other_samples_are_refused_in_a_sentence(recording, rate, words):
    with pytest.raises(UsageError, match=words):
        measure(recording, rate=rate, features=["f0"])


# ------------------------------------------------------------------------------------------- masks

SCORES = np.random.default_rng(1).normal(size=(24, 4))
OWN = np.arange(24) % 4
MATED, OTHERS = SCORES[:, 0] + 2, SCORES[:, 1:].ravel()
BETTER, TIED = np.array([0, 1, 2, 0]), np.ones(4, int)
LISTED = {
    "scores": MATED[:4], "mated": np.array([True, False] * 2), "trial": np.array([0, 0, 1, 1]),
    "speaker": np.array([0, 1] * 2), "spoken": np.array([0, 1]),
}  # fmt: skip


def as_list(*columns: Any) -> Any:
    names = ("ann", "bob")
    return evaluation.ScoreList(
        **dict(zip(LISTED, columns, strict=True)), speakers=names, people=names
    )


TAKES: dict[str, tuple[Any, list[Any]]] = {
    **{
        name: (getattr(evaluation, name), [MATED, OTHERS])
        for name in (
            "eer", "det_curve", "cllr", "min_cllr", "ece_profile", "d_ece", "log10_l", "d_sys",
        )
    },
    "operating_point": (lambda a, b: evaluation.operating_point(a, b, 0.1), [MATED, OTHERS]),
    "pi_sing": (evaluation.pi_sing, [SCORES[:8], SCORES[8:12], np.ones(4, int)]),
    "pi_link": (lambda better, n: evaluation.pi_link(better, 4, n), [BETTER, np.array([2, 3])]),
    "speaker_mean_ranks": (evaluation.speaker_mean_ranks, [MATED[:4], BETTER]),
    "fitted_rank_model": (lambda b, t: evaluation.fitted_rank_model(b, t, 4), [BETTER, TIED]),
    "loss_fits": (evaluation.loss_fits, [np.array([9.0, 4, 2, 1])]),
    "evaluate": (
        lambda scores, own: evaluation.evaluate(
            scores, labels=own, settings=evaluation.EvaluationSettings(replicates=0)
        ),
        [SCORES, OWN],
    ),
    "ScoreMatrix": (evaluation.ScoreMatrix, [SCORES, OWN]),
    "ScoreList": (as_list, list(LISTED.values())),
    "statistics": (statistics, [MATED]),
    "degrees_of_support": (degrees_of_support, [MATED]),
    "local_information_bits": (lambda s, t: local_information_bits(s, t, 1.0, 0.0), [SCORES, OWN]),
    "normalise_rows": (lambda s: normalise_rows(s, 0), [SCORES]),
    "rank_bounds": (rank_bounds, [SCORES, OWN]),
    "rank_histogram": (lambda b, t, w: rank_histogram(b, t, 4, weights=w), [BETTER, TIED, TIED]),
    "rank_histograms": (lambda b, t, w: rank_histograms(b, t, 4, w), [BETTER, TIED, TIED[None]]),
    "fit": (fit, [np.array([9.0, 4, 2, 1])]),
    "fit_many": (fit_many, [np.array([[9.0, 4, 2, 1]])]),
    "Samples": (lambda samples: Samples(samples, 16_000), [SOUND]),
}  # fmt: skip


@pytest.mark.parametrize(("function", "arguments"), TAKES.values(), ids=TAKES)
def test_no_function_takes_masked_values(function, arguments):
    function(*arguments)
    function(*map(np.ma.array, arguments))  # nothing is masked
    for place in range(len(arguments)):
        masked = [np.ma.array(argument) for argument in arguments]
        masked[place].mask = np.arange(masked[place].size).reshape(masked[place].shape) == 1
        with pytest.raises(UsageError, match="masked values: leave these out"):
            function(*masked)


def test_every_function_of_the_evaluation_that_takes_arrays_was_tried():
    for name in evaluation.__all__:
        function = getattr(evaluation, name)
        if inspect.isfunction(function):
            kinds = [
                str(each.annotation) for each in inspect.signature(function).parameters.values()
            ]
            assert name in TAKES or not any("Array" in kind for kind in kinds), name


def test_a_stream_takes_no_masked_values(tmp_path):
    hidden = np.ma.array(np.full(100, 0.1), mask=np.arange(100) > 50)
    heard = Monitor(Population.reference(), ["f0"])
    with pytest.raises(SourceError, match="samples contain masked"):
        heard.push(Block(hidden, 16_000))
    ticks, bins = np.arange(1, 101), np.ma.array(np.full(100, 4), mask=np.arange(100) > 50)
    speech = np.ones(100, bool)
    frames = Monitor(two_features(), ["f0"])
    for frame in (
        Frames(speech, {"f0": Track(ticks, bins)}),
        Frames(speech, {"f0": Track(np.ma.array(ticks, mask=ticks > 9), bins.data)}),
        Frames(np.ma.array(speech, mask=ticks > 9), {"f0": Track(ticks, bins.data)}),
    ):
        with pytest.raises(UsageError, match="masked"):
            frames.push(frame)
        with pytest.raises(UsageError, match="masked"):
            write_frames(tmp_path / "a.npz", frame.speech, frame.tracks, {"f0": 10}, {"f0": 0.01})
    assert not list(tmp_path.iterdir())


def test_templates_have_no_masked_values():
    spec = FeatureSpec("voice", EMBEDDING, 3, 3.0)
    slices = hidden(np.full((2, 3), 0.5), 2, 5)
    with pytest.raises(MonitorError, match="templates of voice contain masked"):
        Cohort(np.array([3.0, 4.0]), {"voice": FeatureTemplates(spec, slices)})
