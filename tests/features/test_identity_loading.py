"""What is loaded, from where, and what is refused; a model's folder may come from an impostor."""

from __future__ import annotations

import logging
import os
import pickle
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from monitor import lazy
from monitor.errors import MonitorError, StoreError, UsageError
from monitor.features import ecapa as module
from monitor.features.ecapa import HUB, Identity, encoder, exported_encoder, resolve

FILES = ("hyperparams.yaml", "embedding_model.ckpt", "mean_var_norm_emb.ckpt", "classifier.ckpt")


@pytest.fixture
def model(tmp_path: Path, ecapa: str) -> Path:
    """A folder of one's own with the real model, its files linked: replace them, never write."""
    folder = tmp_path / "model"
    folder.mkdir()
    for path in Path(ecapa).iterdir():
        (folder / path.name).symlink_to(path.resolve())
    return folder


@pytest.fixture(autouse=True)
def _fresh(tmp_path, monkeypatch):
    """Nothing is remembered, and nothing stays in the temporary folder; torch runs the network."""
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    private = tmp_path / "private"
    private.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(private))
    forget()
    yield
    forget()
    assert list(private.iterdir()) == []


def forget() -> None:
    encoder.cache_clear()
    exported_encoder.cache_clear()


def refused(kind: type[MonitorError], source: object) -> str:
    with pytest.raises(kind) as caught:
        Identity(source)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    return str(caught.value)


def put(path: Path, data: bytes) -> None:
    path.unlink(missing_ok=True)
    path.write_bytes(data)


class Evil:
    """Unpickled, it makes a file."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return os.mkdir, (str(self.mark),)


def evil_yaml(ecapa: str, mark: Path) -> bytes:
    good = (Path(ecapa) / FILES[0]).read_bytes()
    return good + f"\nx: !apply:os.mkdir [{mark}]\n".encode()


def test_the_source_asked_for_comes_before_the_environment_and_that_before_the_hub(
    monkeypatch, tmp_path
):
    monkeypatch.delenv("MONITOR_ECAPA", raising=False)
    assert resolve(None) == HUB == "speechbrain/spkrec-ecapa-voxceleb"
    monkeypatch.setenv("MONITOR_ECAPA", str(tmp_path))
    assert resolve(None) == str(tmp_path)
    assert resolve(HUB) == HUB
    assert resolve(tmp_path / "x") == str(tmp_path / "x")
    monkeypatch.chdir(tmp_path)
    assert resolve("x") == str(tmp_path / "x")
    monkeypatch.setenv("MONITOR_ECAPA", "")
    assert resolve(None) == HUB


@pytest.mark.parametrize("name", ["torch", "torchaudio", "speechbrain.inference.classifiers"])
def test_without_the_extra_it_says_what_to_install(monkeypatch, tmp_path, name):
    with suppress(ImportError):  # half imported it would be of no more use to other tests
        import speechbrain.inference.classifiers  # noqa: F401

        module._settle()  # hypothesis looks at every module in the tests that follow
    monkeypatch.setitem(sys.modules, name, None)
    message = refused(UsageError, tmp_path)
    assert message.endswith("pip install 'speaker-disclosure-monitor[identity]'")


def test_no_folder(tmp_path, ecapa):
    message = refused(UsageError, tmp_path / "gone")
    assert f"{tmp_path / 'gone'} is not a folder: point --ecapa or MONITOR_ECAPA to" in message


@pytest.mark.parametrize("name", [*FILES, "label_encoder.txt"])
def test_a_file_is_missing(model, name):
    (model / name).unlink()
    assert f"{model}: {name}: No such file or directory: point" in refused(StoreError, model)


@pytest.mark.parametrize("name", ["hyperparams.yaml", "embedding_model.ckpt"])
def test_neither_a_pipe_nor_a_file_without_end_is_copied(model, name):
    (model / name).unlink()
    os.mkfifo(model / name)
    assert f"{name} is no plain file" in refused(StoreError, model)
    (model / name).unlink()
    (model / name).symlink_to("/dev/zero")
    assert f"{name} is no plain file" in refused(StoreError, model)
    (model / name).unlink()
    with (model / name).open("wb") as file:
        file.truncate(1 << 40)  # takes no room here, and all of it where it is copied
    assert f"{name} is far too large" in refused(StoreError, model)


def test_hyperparameters_of_a_impostor_do_not_run(model, tmp_path, ecapa):
    mark = tmp_path / "mark"
    put(model / FILES[0], evil_yaml(ecapa, mark))
    message = refused(StoreError, model)
    assert "hyperparams.yaml is not the published one" in message
    assert not mark.exists()


@pytest.mark.parametrize("name", FILES[1:])
@pytest.mark.parametrize("forced", [False, True])
def test_weights_of_a_impostor_do_not_run(model, tmp_path, monkeypatch, name, forced):
    if forced:  # what torch goes by where nobody says weights_only
        monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    mark = tmp_path / "mark"
    put(model / name, pickle.dumps({"a": Evil(mark)}, protocol=2))
    assert f"{name} is damaged, or holds more than weights" in refused(StoreError, model)
    import torch

    (model / name).unlink()
    torch.save({"a": Evil(mark)}, model / name)
    assert f"{name} is damaged, or holds more than weights" in refused(StoreError, model)
    assert not mark.exists()


def test_the_trap_works(tmp_path):
    pickle.loads(pickle.dumps(Evil(tmp_path / "mark")))
    assert (tmp_path / "mark").exists()


def test_what_is_swapped_after_the_check_is_not_loaded(model, tmp_path, monkeypatch, ecapa):
    mark = tmp_path / "mark"
    check = module._check

    def swap(path: Path, source: str) -> None:
        check(path, source)
        evil = evil_yaml(ecapa, mark) if path.name == FILES[0] else pickle.dumps(Evil(mark))
        put(model / path.name, evil)

    monkeypatch.setattr(module, "_check", swap)
    Identity(model)
    assert not mark.exists()
    assert "published" in refused_again(model)


def refused_again(model: Path) -> str:
    forget()
    return refused(StoreError, model)


def test_damaged_and_foreign_weights_are_refused(model, ecapa):
    import torch

    whole = (Path(ecapa) / FILES[1]).read_bytes()
    put(model / FILES[1], whole[: len(whole) // 2])
    assert "embedding_model.ckpt is damaged" in refused(StoreError, model)
    put(model / FILES[1], b"")
    assert "embedding_model.ckpt is damaged" in refused(StoreError, model)
    state = torch.load(Path(ecapa) / FILES[1], map_location="cpu", weights_only=True)
    less = dict(list(state.items())[:-1])  # SpeechBrain itself would fill the hole with noise
    (model / FILES[1]).unlink()
    torch.save(less, model / FILES[1])
    assert "embedding_model.ckpt is of another network" in refused(StoreError, model)
    first = next(iter(state))
    torch.save({**state, first: state[first][..., :1]}, model / FILES[1])
    assert "cannot be loaded: RuntimeError" in refused(StoreError, model)


def test_the_network_is_loaded_once_and_always_the_same(model):
    sound = np.random.default_rng(0).normal(scale=0.1, size=(2, 16_000)).astype(np.float32)
    one, two = Identity(model), Identity(str(model))
    assert one._encoder is two._encoder
    first = one._encoder.embed(sound)
    forget()
    again = Identity(model)._encoder
    assert again is not one._encoder
    np.testing.assert_array_equal(again.embed(sound), first)
    assert first.shape == (2, 192)


@pytest.mark.slow
def test_nothing_heavy_is_imported_before_one_is_made():
    code = (
        "import sys, monitor.features.registry, monitor.features.ecapa;"
        "print([m for m in ('torch', 'torchaudio', 'speechbrain') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE)
    assert done.stdout == b"[]\n"


HUBS = """
import http.server, os, sys, threading
from pathlib import Path

class Hub(http.server.BaseHTTPRequestHandler):
    root, asked = Path(sys.argv[1]), []

    def do_HEAD(self):
        self.send(False)

    def do_GET(self):
        self.send(True)

    def send(self, body):
        before, _, name = self.path.partition("/resolve/main/")
        if before != "/speechbrain/spkrec-ecapa-voxceleb":
            return self.send_error(404)
        Hub.asked.append(name)
        data = (self.root / name).read_bytes()
        self.send_response(200)
        self.send_header("ETag", f'"{name}-1"')
        self.send_header("X-Repo-Commit", "0" * 40)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if body:
            self.wfile.write(data)

    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
threading.Thread(target=server.serve_forever, daemon=True).start()
os.environ["HF_ENDPOINT"] = f"http://127.0.0.1:{server.server_port}"
os.chdir(sys.argv[2])

from monitor.errors import MonitorError
from monitor.features import ecapa
from monitor.features.ecapa import Identity

Identity()
print(sorted(set(Hub.asked)))
server.shutdown()
server.server_close()
ecapa.encoder.cache_clear()
ecapa.exported_encoder.cache_clear()
Identity()  # from what the hub's client has kept
print("again")
import huggingface_hub.constants
huggingface_hub.constants.HF_HUB_CACHE = sys.argv[2] + "/empty"
ecapa.encoder.cache_clear()
ecapa.exported_encoder.cache_clear()
try:
    Identity()
except MonitorError as error:
    print(type(error).__name__, error)
"""


def test_the_hub_is_asked_then_its_cache_then_it_is_out_of_reach(tmp_path, ecapa):
    """The hub's real client, and a hub that speaks as much of the protocol as it needs."""
    work = tmp_path / "work"
    (work / HUB).mkdir(parents=True)  # no hub, although of that name
    kept = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    kept.pop("MONITOR_ECAPA", None)
    kept.pop("HF_HUB_OFFLINE", None)
    done = subprocess.run(
        [sys.executable, "-c", HUBS, ecapa, str(work)],
        env={**kept, "HF_HOME": str(tmp_path / "hub"), "HF_HUB_DISABLE_XET": "1"},
        check=True,
        capture_output=True,
        text=True,
    )
    asked, again, error = done.stdout.splitlines()
    assert asked == str(sorted([*FILES, "label_encoder.txt"]))
    assert again == "again"
    assert error.startswith(f"StoreError cannot fetch {HUB} from http://127.0.0.1:")
    assert "(no connection): point --ecapa or MONITOR_ECAPA to a folder" in error
    assert "Retry" not in done.stderr


def test_what_the_hub_client_says_becomes_one_line(monkeypatch, tmp_path, ecapa):
    import huggingface_hub

    def fail(**_: object) -> None:
        raise OSError("the hub is closed\non Mondays")

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", fail)
    monkeypatch.setattr(module, "_reachable", lambda _: True)
    assert "(OSError: the hub is closed): point" in refused(StoreError, None)


@pytest.mark.parametrize("own", [False, True])
def test_others_are_silenced_in_the_command_lines_process_alone(monkeypatch, own):
    monkeypatch.setattr(lazy, "own_process", own)
    filters, level = list(warnings.filters), logging.getLogger("speechbrain").level
    with module._quiet():
        silenced = warnings.filters != filters
        quieter = logging.getLogger("speechbrain").level != level
    assert (silenced, quieter) == (own, own)
    assert (warnings.filters, logging.getLogger("speechbrain").level) == (filters, level)
