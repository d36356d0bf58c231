"""Work on a real dask cluster: in order, none of it lost, and one line where it cannot be done."""

from __future__ import annotations

import os
import signal
import socket
import time
from contextlib import closing
from pathlib import Path

import pytest

from monitor.errors import MonitorError, UsageError
from monitor.jobs import each_in_order
from tests.dask_cluster import DaskCluster

pytest.importorskip("distributed", reason="needs the extra cluster")
pytestmark = pytest.mark.slow

from distributed import Client  # noqa: E402

from monitor.cluster import Cluster  # noqa: E402


@pytest.fixture(scope="module")
def dask(tmp_path_factory):
    with DaskCluster(tmp_path_factory.mktemp("dask")) as cluster:
        cluster.add_worker()
        cluster.add_worker()
        yield cluster


def where(number: int) -> tuple[int, str]:
    time.sleep(0.05 * (number % 3))
    return number, str(Path.cwd())


def refused(number: int) -> int:
    if number == 2:
        raise UsageError("not two")
    return number


def broken(number: int) -> float:
    return 1 / (number - 2)


def test_results_come_in_order_from_workers_with_folders_of_their_own_and_are_told_of_once(dask):
    told: list[int] = []
    with Cluster(dask.address) as cluster:
        made = each_in_order(where, range(40), cluster, arrived=lambda each: told.append(each[0]))
        numbers, folders = zip(*made, strict=True)
    assert numbers == tuple(range(40))
    assert sorted(told) == list(range(40))
    assert len(set(folders)) == 2
    assert str(Path.cwd()) not in folders


def test_what_the_work_raises_is_raised_here_and_names_the_worker(dask):
    with Cluster(dask.address) as cluster:
        with closing(each_in_order(refused, range(9), cluster)) as results:
            assert [next(results), next(results)] == [0, 1]
            with pytest.raises(UsageError, match=r"^not two \(on worker tcp://127"):
                next(results)
        with pytest.raises(ZeroDivisionError):
            list(each_in_order(broken, range(9), cluster))


def test_a_worker_that_cannot_read_a_file_or_reads_another_is_named(dask, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "talk.wav").write_bytes(b"sound")
    here = Path("/proc/self/cwd/talk.wav")  # another folder in every process
    with Cluster(dask.address) as cluster:
        with pytest.raises(MonitorError, match=r"talk\.wav.*worker tcp://127") as no:
            list(each_in_order(abs, range(4), cluster, reads=lambda _: [here]))
        assert "\n" not in str(no.value)
        missing = tmp_path / "nowhere.wav"  # is for the work to complain of
        assert list(each_in_order(abs, [-1], cluster, reads=lambda _: [missing])) == [1]
        for process in dask.workers:
            Path(f"/proc/{process.pid}/cwd/talk.wav").write_bytes(b"other")
        assert list(each_in_order(abs, [-1], cluster, reads=lambda _: [here])) == [1]
        here.write_bytes(b"longer")
        with pytest.raises(MonitorError, match=r"talk\.wav.*tcp://"):
            list(each_in_order(abs, range(4), cluster, reads=lambda _: [here]))


def test_other_networks_there_than_here_are_refused(dask):
    here = os.getpid()
    with (
        Cluster(dask.address) as cluster,
        pytest.raises(MonitorError, match=f"tcp://.* networks .*, here {here}"),
    ):
        list(each_in_order(abs, [1], cluster, alike=os.getpid))


def refused_within_seconds(address: str, words: str = "no dask scheduler answers at") -> None:
    began = time.monotonic()
    with pytest.raises(MonitorError, match=words) as no:
        Cluster(address)
    assert time.monotonic() - began < 30  # dask waits for minutes
    assert "\n" not in str(no.value)


def test_one_that_does_not_answer_is_one_line_within_seconds(tmp_path):
    with pytest.raises(UsageError):
        Cluster("http://127.0.0.1:1")
    refused_within_seconds("tcp://127.0.0.1:9")
    refused_within_seconds("tls://127.0.0.1:1", "check the address and the certificates")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        refused_within_seconds(f"tcp://127.0.0.1:{silent.getsockname()[1]}")
    with DaskCluster(tmp_path / "dask") as dask:
        dask.scheduler.send_signal(signal.SIGSTOP)
        try:
            refused_within_seconds(dask.address)
        finally:
            dask.scheduler.send_signal(signal.SIGCONT)


def test_a_worker_that_is_killed_loses_nothing(tmp_path):
    with DaskCluster(tmp_path / "dask") as dask:
        workers = [dask.add_worker(), dask.add_worker()]
        with Client(dask.address, set_as_default=False) as client:
            client.wait_for_workers(2)
        with Cluster(dask.address) as cluster:
            results = each_in_order(slow, range(60), cluster)
            assert next(results) == 0
            workers[1].kill()
            assert list(results) == list(range(1, 60))


def slow(number: int) -> int:
    time.sleep(0.1)
    return number


@pytest.mark.parametrize("count", [3, 99])  # nothing is left to hand out, or much
def test_a_scheduler_that_vanishes_is_one_line(tmp_path, count):
    with DaskCluster(tmp_path / "dask") as dask:
        dask.add_worker()
        with (
            Cluster(dask.address) as cluster,
            closing(each_in_order(time.sleep, [0.0] + [0.3] * count, cluster)) as r,
        ):
            next(r)
            dask.scheduler.send_signal(signal.SIGKILL)
            with pytest.raises(MonitorError, match="during the work") as gone:
                list(r)
    assert "\n" not in str(gone.value)
