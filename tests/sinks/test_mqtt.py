"""A voice in the house: what a real broker is told, keeps, refuses, and how the run goes on."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from monitor.errors import UsageError
from monitor.sinks.house import PageDevice, PageVisitor, VoiceDevice
from monitor.sinks.mqtt import Broker
from tests.alerts.receiver import alert
from tests.broker import PASSWORD, Follower, Mosquitto, broker, check_broker, follower
from tests.records import event
from tests.settings import configured
from tests.virtual_microphone import DEVICE, virtual_microphone
from tests.web import records

__all__ = ["broker", "follower", "virtual_microphone"]

CONFIG = "homeassistant/device/voice/config"
RULES = [{"rule": "bits>3 for 5 s", "field": "bits", "threshold": 3.0}]
AT_ONCE_SECONDS = 4.0  # less than any wait for a broker, more than a busy machine takes
"""For hundreds of events: nobody waits for a broker."""


class FakeRelay:
    """What a relay lets out."""

    budget_bits, left_bits, muted = 8.0, 5.5, False
    sent_bits, kept_bits, held_bits = 2.5, 1.5, 0.0
    spent = False

    @property
    def way(self) -> str:
        return "muted" if self.muted or self.spent else "clear"


@pytest.fixture
def relay() -> FakeRelay:
    return FakeRelay()


@pytest.fixture
def device(broker, relay) -> Iterator[VoiceDevice]:
    """A voice with a relay, in a run that has begun."""
    made = VoiceDevice(Broker.parse(broker.url, password=PASSWORD), relay=relay)
    made.write(event(records.start(alerts=RULES)))
    yield made
    made.close()


def states(follower: Follower, topic: str) -> list[dict[str, Any]]:
    return [json.loads(payload) for payload in follower.of(topic)]


def wait_for_count(follower: Follower, topic: str, count: int) -> None:
    until = time.monotonic() + 15
    while len(follower.of(topic)) < count:
        assert time.monotonic() < until, follower.messages
        time.sleep(0.02)


def test_home_assistant_is_told_what_it_requires_and_no_name(broker, relay, follower):
    with_relay = VoiceDevice(Broker.parse(broker.url, password=PASSWORD), relay=relay)
    with_relay.write(event(records.start(alerts=RULES)))
    with_relay.write(event(records.reading(1.0, 2.5, label="ben", watch="ann")))
    with_relay.write(event(alert(recording="talk.flac", label="ben", watch="ann")))
    follower.wait_for("voice/reading")
    assert with_relay.drain() == []
    with_relay.close()
    follower.wait_for("voice/mute", lambda text: '"muted"' in text)  # the last of all
    config = json.loads(follower.wait_for(CONFIG))
    assert config["device"]["identifiers"] == ["disclosure_monitor_voice"]
    assert config["origin"]["name"]
    assert config["availability_topic"] == "disclosure-monitor/voice/status"
    parts = config["components"]
    platforms = {key: part["platform"] for key, part in parts.items()}
    assert platforms == {
        "bits": "sensor", "one_in": "sensor", "alert": "binary_sensor", "mute": "switch",
    }  # fmt: skip
    assert len({part["unique_id"] for part in parts.values()}) == 4
    told = {topic for topic, *_ in follower.messages}
    for part in parts.values():
        assert part["state_topic"] in told
        assert re.fullmatch(r"\{\{ value_json\.\w+ \}\}", part["value_template"])
    assert parts["mute"]["command_topic"] == "disclosure-monitor/voice/mute/set"
    assert parts["bits"]["unit_of_measurement"] == "bit"
    everything = " ".join(payload for _, payload, _ in follower.messages)
    assert not re.search(r"\b(ann|ben|cyd|talk\.flac)\b", everything)

    plain = VoiceDevice(Broker.parse(broker.url, password=PASSWORD), "Living room")
    plain.write(event(records.start()))
    parts = json.loads(follower.wait_for("device/living_room/config"))["components"]
    plain.close()
    # so Home Assistant removes what an earlier run had: without a rule none would ever be on
    assert parts["alert"] == {"platform": "binary_sensor"}
    assert parts["mute"] == {"platform": "switch"}


def test_the_newest_reading_is_shown_at_most_once_a_second(device, follower):
    follower.wait_for("status", "online".__eq__)
    began = time.monotonic()
    for second in range(100):
        device.write(event(records.reading(second, second / 33)))
        time.sleep(0.02)
    took = time.monotonic() - began
    follower.wait_for("reading", lambda text: '"bits":3.0' in text)
    shown = states(follower, "voice/reading")
    assert len(shown) <= took + 2
    bits = [state["bits"] for state in shown]
    assert bits == sorted(bits)
    assert shown[-1]["one_in"] == 8.0
    assert shown[-1]["attributes"]["peak"] == 3.0
    device.write(event(records.reading(301.0, 3.0)))
    time.sleep(1.5)
    assert len(follower.of("voice/reading")) == len(shown)  # nothing has changed
    for more in (4.0, 5.0):
        device.write(event(records.reading(302.0, more)))
        time.sleep(0.4)
    device.close()  # the last one is shown, however soon it came
    follower.wait_for("status", "offline".__eq__)
    assert states(follower, "voice/reading")[-1]["bits"] == 5.0


def test_of_several_people_the_one_who_disclosed_most_is_shown(device, follower):
    for label, bits in (("a", 1.0), ("b", 4.0), ("a", None), ("c", -2.0)):
        device.write(event(records.reading(1.0, bits, label=label)))
    follower.wait_for("reading", lambda text: json.loads(text)["bits"] == 4.0)
    device.write(event(records.reading(2.0, label="b", **records.evidence(9.0, at_least=True))))
    text = follower.wait_for("reading", lambda text: '"bits":9.0' in text)
    assert json.loads(text)["attributes"]["at_least"] is True


def test_an_alert_is_on_until_all_are_cleared(device, follower):
    device.write(event(alert(1.0)))
    device.write(event(alert(2.0, rule="bits>4", level="warning", seconds_left=9.0)))
    device.write(event(alert(3.0, rule="bits>5 for 5 s")))
    device.write(event(alert(4.0, state="cleared")))
    device.write(event(alert(5.0, rule="bits>5 for 5 s", state="cleared")))
    assert device.drain() == []
    follower.wait_for("alert", lambda text: '"seconds":5.0' in text)
    told = states(follower, "voice/alert")
    assert [state["state"] for state in told] == ["OFF", "ON", "ON", "ON", "OFF"]
    assert (told[1]["rule"], told[1]["value"], told[1]["threshold"]) == ("bits>3 for 5 s", 3.42, 3)
    assert told[3]["raised"] == ["bits>5 for 5 s"]


def test_who_comes_later_sees_the_states_but_no_figure_stays(device, broker):
    device.write(event(records.reading(1.0, 2.5)))
    device.write(event(alert()))
    assert device.drain() == []
    late = Follower(broker)
    for topic in (CONFIG, "voice/status", "voice/alert", "voice/mute"):
        late.wait_for(topic)
    time.sleep(0.3)
    kept = {topic: payload for topic, payload, retained in late.messages if retained}
    assert kept["disclosure-monitor/voice/status"] == "online"
    assert "disclosure-monitor/voice/reading" not in kept
    device.close()
    late.wait_for("status", "offline".__eq__)
    late.wait_for("voice/mute", lambda text: '"muted"' in text)
    last = Follower(broker)
    last.wait_for("voice/mute")
    assert states(last, "voice/alert") == [{"state": "OFF", "raised": []}]
    assert last.of("voice/status") == ["offline"]
    for one in (late, last):
        one.close()


def test_the_house_mutes_and_is_told_what_goes_out(device, follower, relay):
    follower.wait_for("voice/mute", lambda text: '"clear"' in text)
    for junk in ("", "on", "TOGGLE", "\x00"):
        follower.publish("disclosure-monitor/voice/mute/set", junk)
    follower.publish("disclosure-monitor/voice/mute/set", "ON")
    follower.wait_for("voice/mute", lambda text: '"ON"' in text)
    assert relay.muted
    follower.publish("disclosure-monitor/voice/mute/set", "OFF")
    wait_for_count(follower, "voice/mute", 3)
    assert not relay.muted
    relay.spent = True  # by the budget
    wait_for_count(follower, "voice/mute", 4)
    follower.publish("disclosure-monitor/voice/mute/set", "OFF")  # never opens again
    wait_for_count(follower, "voice/mute", 5)
    told = [state["state"] for state in states(follower, "voice/mute")]
    assert told == ["OFF", "ON", "OFF", "ON", "ON"]


def test_a_command_that_the_broker_kept_is_none(broker, follower, relay):
    relay.muted = True
    follower.publish("disclosure-monitor/voice/mute/set", "OFF", retain=True)
    made = VoiceDevice(Broker.parse(broker.url, password=PASSWORD), relay=relay)
    made.write(event(records.start()))
    follower.wait_for("voice/mute", lambda text: '"muted"' in text)
    time.sleep(0.3)
    assert relay.muted
    made.close()


def test_a_house_that_was_restarted_is_told_again(device, follower):
    device.write(event(records.reading(1.0, 2.5)))
    follower.wait_for("voice/reading")
    before = {topic: len(follower.of(topic)) for topic in (CONFIG, "voice/reading", "voice/mute")}
    follower.publish("homeassistant/status", "online")
    for topic, count in before.items():
        wait_for_count(follower, topic, count + 1)


def test_a_broker_that_restarts_delays_nothing_and_misses_no_alert(device, broker):
    follower = Follower(broker, "keeps its place")
    follower.wait_for("status", "online".__eq__)
    assert device.drain() == []
    follower.messages.clear()
    broker.stop()
    began = time.monotonic()
    for second in range(300):
        device.write(event(records.reading(second, second / 100)))
    for second in range(4):
        state = "cleared" if second % 2 else "raised"
        device.write(event(alert(float(second), state=state)))
    assert time.monotonic() - began < AT_ONCE_SECONDS
    time.sleep(0.5)
    broker.start()
    follower.wait_for("status", "online".__eq__, seconds=40)
    follower.publish("homeassistant/status", "online")  # as a house does that is back, too
    follower.wait_for("alert", lambda text: '"seconds":3.0' in text)
    follower.wait_for("reading", lambda text: '"bits":2.99' in text)
    told = [
        s["seconds"] for s in states(follower, "voice/alert") if s != {"state": "OFF", "raised": []}
    ]
    assert sorted(set(told)) == [0.0, 1.0, 2.0, 3.0]
    assert told[-1] == 3.0
    assert {state["bits"] for state in states(follower, "voice/reading")} == {2.99}
    assert follower.of(CONFIG)
    assert device.drain() == []
    follower.close()


def test_a_broker_that_stands_still_delays_nothing(device, broker):
    broker.send(signal.SIGSTOP)
    began = time.monotonic()
    for second in range(300):
        device.write(event(records.reading(second, second / 100)))
        device.write(event(alert(second, state="cleared" if second % 2 else "raised")))
    assert time.monotonic() - began < AT_ONCE_SECONDS
    (line,) = device.drain()
    assert "not delivered" in line
    assert PASSWORD not in line
    broker.send(signal.SIGCONT)
    assert device.drain() == []


@pytest.mark.slow
def test_a_killed_run_is_offline(broker, follower, virtual_microphone, tmp_path):
    asked = ("listen", "--device", DEVICE, "--features", "f0", "--alert", "bits>1")
    house = ("--mqtt", broker.url, {"mqtt-name": "Kitchen"})
    process = subprocess.Popen(
        [sys.executable, "-m", "monitor", *configured([*asked, *house], tmp_path)],
        env={**virtual_microphone.environment, "MONITOR_MQTT_PASSWORD": PASSWORD},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    follower.wait_for("kitchen/status", "online".__eq__, 60)
    follower.wait_for("kitchen/reading", seconds=30)
    process.kill()
    process.wait()
    follower.wait_for("kitchen/status", "offline".__eq__)


def test_who_has_not_agreed_is_neither_shown_nor_counted(broker, follower):
    page = PageDevice(Broker.parse(broker.url, password=PASSWORD))
    follower.wait_for("device/voice_page/config")
    agreed, silent = PageVisitor(page), PageVisitor(page)
    for visitor in (agreed, silent):
        visitor.write(event(records.start()))
        visitor.write(event(records.reading(1.0, 9.0)))
        visitor.write(event(alert()))
    agreed.agree(True)
    agreed.agree(False)
    agreed.agree(True)
    agreed.write(event(alert(state="cleared", rule="bits>9 for 5 s")))  # a slider was moved
    agreed.close()
    agreed.agree(True)
    assert page.drain() == []
    page.close()
    follower.wait_for("voice_page/status", "offline".__eq__)
    told = [(s["state"], s["listening"]) for s in states(follower, "voice_page/alert")]
    nobody = ("OFF", 0)
    assert told[:-1] == [nobody, ("ON", 1), nobody, ("ON", 1), ("OFF", 1), nobody]
    assert told[-1] == nobody
    assert "bits" not in " ".join(follower.of("voice_page/alert"))


# --- Who may speak to it.


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two certificates of 127.0.0.1 that this machine has signed itself: one.pem, other.pem."""
    folder = tmp_path_factory.mktemp("certificates")
    for name in ("one", "other"):
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
             "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.pem", "-days", "2",
             "-subj", "/CN=broker", "-addext", "subjectAltName=IP:127.0.0.1"],
            cwd=folder, check=True, capture_output=True,
        )  # fmt: skip
    return folder


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a library's socket
def test_a_certificate_is_checked(tmp_path, certificates):
    check_broker()
    server = Mosquitto(tmp_path, certificates / "one.pem")
    server.start()
    try:
        right = Broker.parse(server.url, password=PASSWORD, authority=str(certificates / "one.pem"))
        made = VoiceDevice(right)
        made.write(event(records.start(alerts=RULES)))
        assert made.drain() == []
        made.close()
        for authority in (certificates / "other.pem", None):
            wrong = Broker.parse(server.url, password=PASSWORD, authority=authority)
            with pytest.raises(UsageError, match=r"untrusted certificate.*mqtt-ca"):
                VoiceDevice(wrong)
        named = server.url.replace("127.0.0.1", "localhost")
        other_name = Broker.parse(named, password=PASSWORD, authority=right.authority)
        with pytest.raises(UsageError, match="untrusted certificate"):
            VoiceDevice(other_name)
    finally:
        server.stop()


def test_a_wrong_password_is_refused_and_not_shown(broker):
    with pytest.raises(UsageError, match=r"refuses house .Not authorized") as caught:
        VoiceDevice(Broker.parse(broker.url, password="a wrong secret"))
    assert "wrong secret" not in str(caught.value)


def test_without_a_broker_the_run_goes_on_and_says_so():
    said: list[str] = []
    made = VoiceDevice(Broker.parse("mqtt://127.0.0.1:9"), report=said.append)
    made.write(event(records.start(alerts=RULES)))
    made.write(event(alert()))
    (line,) = said
    assert line.startswith("mqtt 127.0.0.1:9 is unavailable (Connection refused)")
    assert made.drain() == ["mqtt 127.0.0.1:9: 2 of 2 states not delivered: no connection"]
    made.close()
    made.close()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("homeassistant.local", "needs an address"),
        ("http://secret@host", "needs an address"),
        ("mqtt://", "needs an address"),
        ("mqtt://host:port", "needs an address"),
        ("mqtt://host/?secret=1", "needs an address"),
        ("mqtt://host/a/#", "needs an address"),
        ("mqtt://host/a/%23", "invalid prefix"),
        ("mqtt://:secret@host", "needs a user"),
    ],
)
def test_an_address_that_is_none(url, words):
    with pytest.raises(UsageError, match=words) as caught:
        Broker.parse(url)
    assert "secret" not in str(caught.value)


def test_an_authority_goes_with_encryption_and_is_a_certificate(tmp_path):
    with pytest.raises(UsageError, match="needs mqtts://"):
        Broker.parse("mqtt://host", authority="ca.pem")
    (tmp_path / "none.pem").write_text("nothing")
    for name, words in (("none.pem", "no certificate"), ("missing.pem", "No such file")):
        with pytest.raises(UsageError, match=words):
            Broker.parse("mqtts://host", authority=tmp_path / name).context()
