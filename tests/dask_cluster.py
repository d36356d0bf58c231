"""A real dask scheduler and workers, each a process in a folder of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import monitor
from monitor.lazy import Managed

__all__ = ["DaskCluster"]

ROOT = Path(monitor.__file__).parents[1]
PATIENCE_SECONDS = 60.0
QUIET = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
}
NO_PAGE = ("--no-dashboard", "--dashboard-address", "127.0.0.1:0")


class DaskCluster(Managed):
    """A scheduler on a free port of this machine, and the workers that are asked for.

    Attributes:
        address: of the scheduler.
        scheduler: its process.
        workers: their processes.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self.workers: list[subprocess.Popen[bytes]] = []
        note = folder / "scheduler.json"
        options = ["--port", "0", "--scheduler-file", str(note)]
        self.scheduler = self._start("scheduler", ["scheduler", *options], ROOT)
        self.address = self._written(note)

    def add_worker(self, package: Path = ROOT) -> subprocess.Popen[bytes]:
        """One more worker, whose `monitor` lies in this folder."""
        options = [self.address, "--nthreads", "1", "--no-nanny", "--memory-limit", "0"]
        name = f"worker{len(self.workers)}"
        worker = self._start(name, ["worker", *options], package)
        self.workers.append(worker)
        return worker

    def close(self) -> None:
        """End what has not ended."""
        for process in (*self.workers, self.scheduler):
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()

    def _start(self, name: str, arguments: list[str], package: Path) -> subprocess.Popen[bytes]:
        own = self._folder / name
        own.mkdir()
        with (own / "log").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "dask", *arguments, "--host", "127.0.0.1", *NO_PAGE],
                cwd=own,
                env=os.environ | {"PYTHONPATH": str(package), "DASK_CONFIG": str(own)} | QUIET,
                stdout=log,
                stderr=log,
            )

    def _written(self, note: Path) -> str:
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return str(json.loads(note.read_text())["address"])
            except (OSError, ValueError):  # not all of it is there yet
                assert self.scheduler.poll() is None
                assert time.monotonic() < until
                time.sleep(0.02)
