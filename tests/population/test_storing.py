import os
import stat
import zipfile
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from monitor.errors import SchemaError, StoreError
from monitor.population.store import SCHEMA, read_store, store_kind, write_store

ARRAYS = {
    "a/b": np.arange(12).reshape(3, 4),
    "floats": np.array([0.5, np.nan, np.inf]),
    "flags": np.array([True, False]),
    "empty": np.zeros((0, 3), dtype=np.float32),
}
HEADER = {"names": ["Zoë", "19"], "nested": {"x": [1, 2.5, None]}, "ok": True}


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "store.npz"
    write_store(path, "population", HEADER, ARRAYS)
    return path


def refused(path, kind="population", error=StoreError):
    """The message: one line that names the file."""
    with pytest.raises(StoreError) as caught:
        read_store(path, kind)
    assert type(caught.value) is error
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message
    return message


def test_round_trip(store):
    header, arrays = read_store(store, "population")
    assert header == {"kind": "population", "schema": SCHEMA, **HEADER}
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        assert_array_equal(arrays[name], array)
    assert store_kind(store) == "population"
    assert "is a population file. Use a rank model file" in refused(store, "rank_model")


def test_private_to_its_owner_whatever_the_umask(store):
    store.chmod(0o666)
    before = os.umask(0)
    try:
        write_store(store, "rank_model", {}, {})
    finally:
        os.umask(before)
    assert stat.S_IMODE(store.stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["write_array", "fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failing_write_leaves_the_old_file_and_nothing_else(store, monkeypatch, name, error):
    def fail(*_args, **_kwargs):
        raise error

    where = {"write_array": np.lib.format, "fsync": os, "replace": Path}[name]
    before = store.read_bytes()
    monkeypatch.setattr(where, name, fail)
    with pytest.raises(StoreError if isinstance(error, OSError) else KeyboardInterrupt) as caught:
        write_store(store, "population", HEADER, {"more": np.arange(10_000)})
    monkeypatch.undo()
    assert store.read_bytes() == before
    assert list(store.parent.iterdir()) == [store]
    if isinstance(error, OSError):
        assert str(store) in str(caught.value)
        assert "No space left on device" in str(caught.value)
        assert "\n" not in str(caught.value)


def test_nothing_is_ever_unpickled(tmp_path):
    ran: list[int] = []

    class Bad:
        def __reduce__(self):
            return ran.append, (1,)

    path = tmp_path / "store.npz"
    header = np.frombuffer(b'{"kind": "population", "schema": 1}', dtype=np.uint8)
    np.savez(path, header=header, bad=np.array([Bad()], dtype=object))
    refused(path)
    assert not ran


def test_a_newer_schema_says_so(tmp_path):
    path = tmp_path / "store.npz"
    write_store(path, "population", {"schema": SCHEMA + 1}, ARRAYS)
    message = refused(path, error=SchemaError)
    assert f"schema {SCHEMA + 1}" in message
    assert "Upgrade" in message
    # even where it is of another kind: what that is may have changed
    refused(path, kind="rank_model", error=SchemaError)


def test_missing_empty_and_directory(tmp_path):
    assert "does not exist" in refused(tmp_path / "nothing.npz")
    assert "is a directory" in refused(tmp_path)
    (tmp_path / "empty.npz").touch()
    assert "is damaged or not" in refused(tmp_path / "empty.npz")
    for path in (tmp_path / "nothing.npz", tmp_path, tmp_path / "empty.npz"):
        assert store_kind(path) is None


def _foreign(path, name):
    if name == "text":
        path.write_text("speaker,score\n19,0.5\n")
    elif name in ("npy", "pickle"):
        with path.open("wb") as file:
            np.save(file, np.arange(3) if name == "npy" else np.array([{}], dtype=object))
    elif name == "npz without a header":
        np.savez(path, scores=np.arange(3))
    elif name == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("header.npy", "hello")
    else:
        np.savez(path, header=np.frombuffer(name.encode(), dtype=np.uint8))


@pytest.mark.parametrize(
    "name",
    ["text", "npy", "pickle", "npz without a header", "zip", "[]", "{", '"x"', "{}", "\udcff",
     '{"kind": "population"}', '{"kind": "population", "schema": "new"}', "null"],
)  # fmt: skip
def test_foreign_files(tmp_path, name):
    path = tmp_path / "foreign.npz"
    _foreign(path, name.encode("utf-8", "surrogateescape").decode("latin-1"))
    refused(path)
    store_kind(path)


def test_any_truncation_is_noticed(store):
    whole = store.read_bytes()
    for size in np.linspace(0, len(whole) - 1, 150).astype(int):
        store.write_bytes(whole[:size])
        refused(store)
