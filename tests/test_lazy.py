"""What all threads of a process share."""

import time
from threading import Barrier, Thread

from monitor.lazy import once

THREADS = 8


def test_what_is_loaded_once_is_loaded_by_one_of_many_threads():
    together, loaded = Barrier(THREADS), []

    @once
    def load(name: str) -> str:
        loaded.append(name)
        time.sleep(0.05)
        return name

    def ask() -> None:
        together.wait()
        assert load("network") == "network"

    threads = [Thread(target=ask) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert loaded == ["network"]
