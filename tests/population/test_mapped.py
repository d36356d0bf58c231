"""Stores of very many people: their templates are mapped, and compared in single precision."""

import io
import stat
import struct
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from benchmarks.scale import create_population, draw_second
from monitor.errors import StoreError
from monitor.maths import rank_models
from monitor.maths.scores import unit_vectors
from monitor.npz import MAPPED, Rows, mapped_arrays, write_arrays
from monitor.population.cohort import FeatureTemplates
from monitor.population.interpolation import at_template
from monitor.population.people import ManyPeople, Speaker
from monitor.population.population import Population
from monitor.stream import attacker
from monitor.stream.monitor import Monitor
from monitor.types import Frames, Track

BITS = 1e-5
"""Figures of both kinds of store differ by less."""


@pytest.fixture(scope="module")
def crowd() -> Population:
    """Some people of whom two are the same to the last bit, and some nearly."""
    people = create_population(400).only(["voice"])
    slices = people.features["voice"].slices.copy()
    slices[6 * 30 : 6 * 31] = slices[6 * 29 : 6 * 30]
    for place in range(31, 60):
        slices[6 * place : 6 * (place + 1)] = slices[6 * 29 : 6 * 30]
        slices[6 * place, place] += np.float16(2e-3)
    spec = people.features["voice"].spec
    return people._with(features={"voice": FeatureTemplates(spec, slices)})


@pytest.fixture(scope="module")
def stores(crowd, tmp_path_factory):
    """The same people in an ordinary store and in a mapped one, read."""
    folder = tmp_path_factory.mktemp("stores")
    crowd.save(folder / "plain.npz")
    crowd.save(folder / "mapped.npz", mapped=True)
    assert stat.S_IMODE((folder / "mapped.npz").stat().st_mode) == 0o600
    return Population.load(folder / "plain.npz"), Population.load(folder / "mapped.npz")


def numbers(value):
    """Every number in a record, and everything else as it is."""
    if isinstance(value, dict):
        return [each for key in value for each in ([key], *numbers(value[key]))]
    if isinstance(value, list | tuple):
        return [one for each in value for one in numbers(each)]
    return [value]


@pytest.mark.parametrize("watch", ["00000029", "00000030", "00000044", "00000311", None])
def test_ranks_and_the_order_of_the_best_are_exact_and_figures_close(stores, watch):
    monitors = [Monitor(store, ["voice"], watch=watch) for store in stores]
    templates = [monitor.attacker.scorer.templates["voice"] for monitor in monitors]
    assert [matrix.dtype for matrix in templates] == [np.float64, np.float32]
    slices = stores[0].features["voice"].slices
    generator = np.random.default_rng(1)
    for second in range(24):
        block = draw_second(stores[0], second)
        if second % 3 == 2:  # of the one whom many are like
            voice = slices[6 * 29].astype(np.float32) / 3
            voice = unit_vectors(voice + generator.normal(0, 1, voice.size))
            block = Frames(block.speech, {"voice": Track(np.array([100]), voice[None])})
        plain, mapped = (monitor.push(block)[0] for monitor in monitors)
        assert mapped.features["voice"].rank == plain.features["voice"].rank
        assert_allclose(mapped.posterior, plain.posterior, atol=1e-7)
        assert plain.ratios is not None
        assert mapped.ratios is not None
        assert_allclose(mapped.ratios, plain.ratios, atol=BITS)
        one, other = plain.record(), mapped.record()
        assert [name for name, _ in one["top"]] == [name for name, _ in other["top"]]
        for a, b in zip(numbers(one["among"]), numbers(other["among"]), strict=True):
            assert a == b or abs(a - b) <= BITS * max(1.0, abs(a))
        for key in ("bits", "evidence_bits", "closed_set_bits_high", "gain_bits_low", "enrolled"):
            assert one[key] is None or other[key] == pytest.approx(one[key], abs=BITS)


def test_people_with_all_that_is_known_of_them_come_back(tmp_path):
    reference = Population.reference()
    first, later = (reference.chosen(reference.names[i : i + 12]) for i in (0, 6))
    again = Population(
        [Speaker(each.name, sound=each.sound) for each in later.speakers[:6]],
        later.offsets[:7],
        {
            name: FeatureTemplates(each.spec, each.slices[: later.offsets[6]])
            for name, each in later.features.items()
        },
    )
    people = first.extended(again)
    days = ("2026-01-31", "2026-02-01")
    details = [replace(each, days=days) if i in (1, 4) else each
               for i, each in enumerate(people.speakers)]  # fmt: skip
    people = people.with_details(details)
    people.save(tmp_path / "plain.npz")
    people.save(tmp_path / "mapped.npz", mapped=True)
    plain, mapped = (Population.load(tmp_path / f"{name}.npz") for name in ("plain", "mapped"))
    assert isinstance(mapped.speakers, ManyPeople)
    assert list(mapped.speakers) == list(plain.speakers)
    for one, other in zip(plain.speakers, mapped.speakers, strict=True):
        assert_array_equal(one.sound, other.sound)
        for mine, theirs in zip(one.sources, other.sources, strict=True):
            assert_array_equal(mine.landmarks, theirs.landmarks)
    assert mapped.fingerprint() == plain.fingerprint()
    hashes = plain.speakers[3].sources[0].hashes
    assert [who.name for who, _ in mapped.overlapping(hashes)] == [plain.names[3]]
    assert mapped.overlapping(["none"]) == []
    recorded = [each.name for each in mapped.recorded(plain.names[5])]
    assert recorded == [each.name for each in plain.recorded(plain.names[5])]
    scoring = plain.scoring()
    assert_array_equal(mapped.degradations(scoring), plain.degradations(scoring))
    apart = [each.sessions_apart(scoring) for each in (plain, mapped)]
    assert [None if each is None else each.rows for each in apart] == [12 + 6] * 2
    for feature in plain.features:
        assert mapped.empty(feature) == plain.empty(feature)
    # what most people sound like is told without making them
    reference.save(tmp_path / "mapped.npz", mapped=True)
    assert Population.load(tmp_path / "mapped.npz").condition() == reference.condition()


def test_a_store_cut_short_is_refused_in_one_line(crowd, tmp_path):
    path = tmp_path / "mapped.npz"
    crowd.save(path, mapped=True)
    whole = path.read_bytes()
    for share in (0.2, 0.6, 0.999):
        path.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(StoreError) as caught:
            Population.load(path)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("made", [np.nan, 0.0])
def test_templates_that_are_none_any_more_are_refused_at_a_reading(crowd, tmp_path, made):
    path = tmp_path / "mapped.npz"
    crowd.save(path, mapped=True)
    monitor = Monitor(Population.load(path), ["voice"], watch="00000001")
    matrix = monitor.attacker.scorer.templates["voice"]
    data, start = path.read_bytes(), path.read_bytes().find(matrix.tobytes())
    with path.open("r+b") as file:  # as `forget` overwrites what it replaced
        file.seek(start)
        file.write(np.full(matrix.shape, made, "<f4").tobytes())
    assert len(data) == path.stat().st_size
    for second in range(2):
        monitor.push(draw_second(crowd, second))
    with pytest.raises(StoreError, match="the store changed"):
        monitor.push(draw_second(crowd, 2))


def test_several_moments_are_weighed_as_each_alone(stores, monkeypatch):
    plain, _ = stores
    whole = [draw_second(plain, second) for second in range(9)]
    found = []
    for most in (1 << 22, 2 * 400):
        monkeypatch.setattr(attacker, "_BATCH", most)
        monitor = Monitor(plain, ["voice"], watch="00000029")
        ticks = np.concatenate([100 * i + each.tracks["voice"].ticks for i, each in
                                enumerate(whole)])  # fmt: skip
        values = np.concatenate([each.tracks["voice"].values for each in whole])
        block = Frames(np.ones(900, np.bool_), {"voice": Track(ticks, values)})
        found.append([reading.record() for reading in monitor.push(block)])
    assert found[0] == found[1]
    assert len(found[0]) == 9


# ------------------------------------------------------------------------------- what others made


def archive(**changes) -> bytes:
    """A mapped array, and what an impostor has made of it."""
    file = io.BytesIO()
    rows = Rows((4, 3), np.dtype("<f4"), [np.ones((2, 3)), np.zeros((2, 3))])
    write_arrays(file, {"a": np.arange(3)}, {"b": rows})
    data = bytearray(file.getvalue())
    local = zipfile.ZipFile(file).getinfo(f"{MAPPED}b.npy").header_offset
    if method := changes.get("method"):
        at = data.rfind(b"PK\x01\x02") + 10
        data[at : at + 2] = struct.pack("<H", method)
    if length := changes.get("name_length"):
        data[local + 26 : local + 28] = struct.pack("<H", length)
    if header := changes.get("header"):
        start = data.find(b"\x93NUMPY", local) + 10
        end = data.find(b"\n", start)
        data[start:end] = header.ljust(end - start)
    return bytes(data)


@pytest.mark.parametrize(
    "changes",
    [
        {"method": 8},
        {"name_length": 60_000},
        {"header": b"{'descr': '<f4', 'fortran_order': True, 'shape': (4, 3), }"},
        {"header": b"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 4), }"},
        {"header": b"{'descr': '<f4', 'fortran_order': False, 'shape': (-4, -3), }"},
        {"header": b"{'descr': '|O', 'fortran_order': False, 'shape': (6, 1), }"},
        {"header": b"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 3), }"},
    ],
)
def test_what_cannot_be_mapped_is_refused(changes, tmp_path):
    path = tmp_path / "a.npz"
    path.write_bytes(archive(**changes))
    with path.open("rb") as file, pytest.raises((ValueError, zipfile.BadZipFile)):
        mapped_arrays(file)


# ------------------------------------------------------------------- rank models among very many


@pytest.mark.parametrize("seconds", [0.4, 2.5, 7.0, 200.0])
def test_expected_bits_among_very_many_are_those_of_a_sum_over_every_rank(seconds, monkeypatch):
    model = Population.reference().rank_models.find(("voice",), "cross")
    assert model is not None
    point = at_template(model, 10.0, np.array([False])).evaluate_at(seconds)
    some = slice(0, 201, 25)
    found = point.expected_bits(200_000, some)
    monkeypatch.setattr(rank_models, "FINE_FROM", 1 << 60)
    assert_allclose(found, point.expected_bits(200_000, some), atol=1e-6)
