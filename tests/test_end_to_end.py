"""A reader at a microphone, the page in a browser, an alert at a webhook, a ledger: all of it."""

import json
import re
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from tests.alerts.receiver import receiving
from tests.virtual_microphone import virtual_microphone
from tests.web.conftest import browser

__all__ = ["browser", "virtual_microphone"]

READER, CHAPTER = "1272", "dev-clean/1272/128104.opus"


def lines_of(process: subprocess.Popen[str], wanted: str) -> str:
    """What the process says on stderr, up to the line that holds this."""
    said = []
    for line in process.stderr:
        said.append(line)
        if wanted in line:
            return line
    pytest.fail("".join(said))


def raised(got: list[Any]) -> list[dict[str, Any]]:
    """The alert that was asked for: a warning may come before it, or another one."""
    wanted = ("gain_bits", "alert", "raised")
    return [a for a in got if (a["field"], a["level"], a["state"]) == wanted]


def test_spoken_seen_and_told(virtual_microphone, shared, browser, tmp_path):
    virtual_microphone.play_file(shared / "speech" / CHAPTER, 180.0)
    with receiving() as receiver:
        log, ledger = tmp_path / "run.jsonl", tmp_path / "me.db"
        process = subprocess.Popen(
            [sys.executable, "-m", "monitor", "listen", "--watch", READER,
             "--features", "f0", "--jsonl", str(log), "--web", "0", "--alert", "gain_bits>0.05",
             "--alert", "bits>5", "--warn", "30", "--budget", "6.8",
             "--ledger", str(ledger)],
            env={**virtual_microphone.environment, "MONITOR_WEBHOOK": receiver.url},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            url = re.findall(r"http://\S+", lines_of(process, "the page is at"))[0]
            tab = browser.new_page()
            problems: list[str] = []
            tab.on("pageerror", lambda error: problems.append(str(error)))
            tab.goto(url)
            tab.wait_for_selector("body[data-ready=yes]", timeout=60_000)
            until = time.monotonic() + 300  # the machine may be busy
            while not raised(receiver.got) or log.read_text().count('"reading"') < 10:
                assert time.monotonic() < until, "neither alert nor readings"
                tab.wait_for_timeout(200)
            seen = tab.inner_text("body")
            everybody = tab.locator(".strip span").count()
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=120)
        finally:
            process.kill()
            process.wait()
    assert problems == []
    assert "bits" in seen
    assert everybody == 50
    assert READER in seen
    alert = raised(receiver.got)[0]
    records = [json.loads(line) for line in log.read_text().splitlines()]
    assert [records[0]["type"], records[-1]["type"]] == ["start", "end"]
    assert alert["seconds"] in {record["seconds"] for record in records[1:-1]}
    assert process.returncode in (3, 4), err  # 4 where a busy machine has thinned
    shown = subprocess.run(
        [sys.executable, "-m", "monitor", "ledger", "show", str(ledger)],
        check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    (session,) = [json.loads(line) for line in shown.stdout.splitlines()]
    assert session["speaker"] == READER
