"""ECAPA as one ONNX file: the same embeddings, from a private cache that heals itself."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from monitor.errors import StoreError
from monitor.features.ecapa import (
    VERSION,
    Identity,
    cache_folder,
    encoder,
    exported_encoder,
    is_sealed,
    sealed,
)
from monitor.features.embeddings import RATE, Network, network_bytes
from monitor.features.registry import ready
from tests.weights import onnx_extra


@pytest.fixture(autouse=True)
def _fresh():
    onnx_extra()
    exported_encoder.cache_clear()
    yield
    exported_encoder.cache_clear()


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """An empty one, for one test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return cache_folder()


def exported(ecapa: str) -> Path:
    """The file, exported now or by a test before."""
    exported_encoder(ecapa)
    (found,) = cache_folder().glob("ecapa-*.onnx")
    return found


@pytest.mark.parametrize("seconds", [1.0, 1.37, 3.0])
def test_embeddings_are_those_of_torch(shared, seconds, ecapa):
    count = round(seconds * RATE)
    sound = [
        soundfile.read(path, frames=count, start=RATE, dtype="float32")[0]
        for path in sorted((shared / "speech" / "dev-clean").glob("*/*.opus"))[:12:4]
    ]
    noise = np.random.default_rng(0).normal(scale=0.3, size=count)
    windows = np.stack([*sound, 0.002 * sound[0], noise]).astype(np.float32)
    fast = Identity(ecapa)._encoder
    assert isinstance(fast, Network)
    ours, theirs = fast.embed(windows), encoder(ecapa).embed(windows)
    assert ours.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(ours, axis=1), 1, atol=1e-6)
    assert (ours * theirs).sum(axis=1).min() > 0.998
    # in whole numbers, and the same whatever else is in the batch
    np.testing.assert_array_equal(fast.embed(windows[1:2])[0], ours[1])
    assert exported(ecapa).stat().st_size < 60e6


def test_another_device_is_torchs(ecapa):
    assert Identity(ecapa, device="cpu:0")._encoder is encoder(ecapa, "cpu:0")


def test_the_file_is_private_and_named_by_its_weights(cache, ecapa):
    path = exported(ecapa)
    digest = encoder(ecapa).digest
    assert path.name == f"ecapa-{digest}-{VERSION}.onnx"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_one_bit_that_fails_is_noticed_and_the_file_made_again(cache, ecapa):
    path = exported(ecapa)
    whole = path.read_bytes()
    spoilt = bytearray(whole)
    spoilt[len(whole) // 2] ^= 1
    for damaged in (bytes(spoilt), whole[:-1], b""):
        path.write_bytes(damaged)
        exported_encoder.cache_clear()
        assert isinstance(exported_encoder(ecapa), Network)
        assert is_sealed(path.read_bytes())


def test_where_nothing_can_be_kept_it_runs_all_the_same(cache, ecapa):
    cache.parent.parent.mkdir(exist_ok=True)
    cache.parent.write_text("in the way")
    assert isinstance(exported_encoder(ecapa), Network)


def test_what_others_could_have_put_there_is_not_run(cache, tmp_path, ecapa):
    path = exported(ecapa)
    path.write_bytes(sealed(b"another network"))
    path.parent.chmod(0o777)
    exported_encoder.cache_clear()
    assert isinstance(exported_encoder(ecapa), Network)
    assert path.read_bytes() == sealed(b"another network")


EXPORTING = """
import logging, os
from monitor.features.ecapa import exported_encoder

exported_encoder(os.environ["MONITOR_ECAPA"])
print(logging.root.handlers)
"""


def test_exporting_leaves_the_log_of_a_program_alone(tmp_path, ecapa):
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "MONITOR_ECAPA": ecapa}
    done = subprocess.run(
        [sys.executable, "-c", EXPORTING], check=True, stdout=subprocess.PIPE, env=environment
    )
    assert done.stdout.decode().strip() == "[]"
    assert list(tmp_path.glob("*/ecapa-*.onnx"))


TORCHLESS = """
import importlib.abc, sys

class Without(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "torchaudio", "speechbrain", "onnx"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Without())
for name in ("torch", "torchaudio", "speechbrain", "onnx"):
    sys.modules[name] = None
import numpy as np
from monitor.features.ecapa import Identity
from monitor.features.registry import ready

assert ready("identity")
sound = np.random.default_rng(0).normal(scale=0.1, size=(1, 16_000)).astype(np.float32)
print(Identity()._encoder.embed(sound)[0, :3].tolist())
"""


@pytest.mark.parametrize("by", ["folder", "file"])
def test_once_exported_nobody_needs_torch_and_nobody_is_told(tmp_path, by, ecapa):
    copy = tmp_path / "speaker.onnx"
    shutil.copy(exported(ecapa), copy)
    home = tmp_path / "home"
    home.mkdir()
    if by == "folder":
        shutil.copytree(cache_folder(), home / cache_folder().name)
    environment = {
        **{name: value for name, value in os.environ.items() if name != "CI"},
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home),
        "MONITOR_ECAPA": ecapa if by == "folder" else str(copy),
    }
    done = subprocess.run(
        [sys.executable, "-c", TORCHLESS], check=True, stdout=subprocess.PIPE, env=environment
    )
    sound = np.random.default_rng(0).normal(scale=0.1, size=(1, 16_000)).astype(np.float32)
    theirs = Network(network_bytes(exported(ecapa)), "here").embed(sound)[0, :3]
    np.testing.assert_allclose(ast.literal_eval(done.stdout.decode()), theirs, atol=1e-5)
    kept = [cache_folder().name] if by == "folder" else []
    assert [each.name for each in home.iterdir()] == kept  # onnxruntime of 1.29 leaves an identity


def test_without_onnxruntime_torch_computes(monkeypatch, ecapa):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert Identity(ecapa)._encoder is encoder(ecapa)


def test_a_file_that_was_not_exported_by_us_is_refused(tmp_path, ecapa):
    other = tmp_path / "other.onnx"
    other.write_bytes(exported(ecapa).read_bytes()[:-1])
    with pytest.raises(StoreError, match="is damaged, or was not exported by this") as caught:
        Identity(other)
    assert "\n" not in str(caught.value)


def test_ready_says_whether_there_is_something_to_run(tmp_path, monkeypatch, cache):
    for name in ("torch", "torchaudio", "speechbrain"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setenv("MONITOR_ECAPA", str(tmp_path))
    assert not ready("identity")
    (tmp_path / "some.onnx").write_bytes(b"x")
    monkeypatch.setenv("MONITOR_ECAPA", str(tmp_path / "some.onnx"))
    assert ready("identity")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert not ready("identity")
