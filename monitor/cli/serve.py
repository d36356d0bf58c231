"""monitor serve: a page at which people enrol, speak and see their bits."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import click

from monitor.cli.help import HelpCommand
from monitor.cli.options import (
    Seconds,
    among_option,
    feature_setup,
    group,
    option,
    say,
    setting,
    shared,
    speaker_model_option,
    with_options,
)
from monitor.cli.page_options import LOOPBACK, Address, HouseOptions, mqtt_option, web_token_setting
from monitor.errors import UsageError


@dataclass(frozen=True, slots=True)
class PageHouseOptions(HouseOptions):
    """A broker of MQTT, for a page."""

    mqtt: str | None = mqtt_option(
        "Show the number of speakers and whether an alert is raised in Home Assistant (extra "
        "'mqtt'). Only people who agree at the page are included. The MQTT broker is "
        "mqtt://USER@HOST:PORT/PREFIX, or mqtts:// for TLS. The password comes from "
        "MONITOR_MQTT_PASSWORD, or from the address in @FILE or MONITOR_MQTT. No name and no "
        "figure is sent."
    )
    mqtt_name: str = setting(
        "mqtt-name NAME", "Name of the device in Home Assistant.", default="voice page"
    )


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """Options of the command."""

    web: tuple[str, int] = option(
        "--web", "Address of the page.", type=Address(), default=f"{LOOPBACK}:8000"
    )
    web_token: str | None = shared(web_token_setting)
    certificate: Path | None = option(
        "--certificate FILE",
        "Serve HTTPS with this certificate (PEM, with its chain). Browsers on other machines need "
        "it to use the microphone.",
    )
    key: Path | None = option(
        "--key FILE", "Private key of the certificate. [default: in the same file]"
    )
    data: Path | None = option(
        "--data DIR",
        "Folder for templates, one private file (0600) per person. [default: "
        "$XDG_DATA_HOME/speaker-disclosure-monitor/people, otherwise under ~/.local/share]",
    )
    store: str | None = option(
        "-p, --population FILE",
        "Other people with whom the attacker compares each voice. [default: the shipped readers]",
    )
    enrol_seconds: float = setting(
        "enrol-seconds D", "Speech seconds per template.", type=Seconds(), default="60"
    )
    longest: float = option(
        "--for LENGTH", "Longest listening session.", type=Seconds(), default="2h"
    )
    speaker_model: ClassVar[Any] = speaker_model_option
    among: tuple[int, ...] | None = shared(among_option)
    house: PageHouseOptions = group(PageHouseOptions, "Options")


@click.command(
    "serve", cls=HelpCommand, short_help="Open a web page to enrol, speak and watch your bits."
)
@with_options(ServeOptions)
def command(options: ServeOptions) -> int:
    """Serve a page at which people enrol, speak and see how much their voices disclose.

    \b
    monitor serve                                  then open the address shown
    monitor serve --web 8080 --data people/
    monitor serve --web 0.0.0.0:8443 --certificate page.pem --key page.key

    Any address other than 127.0.0.1 needs a certificate (docs/serve.md). Audio goes from the
    browser's microphone to this program only, and is never stored. Templates are stored. They are
    biometric data, in files that only you can read. "Forget me" or `monitor people DIR --forget
    NAME` deletes a template. `monitor people DIR` shows which people are separable. `monitor
    listen` and `monitor replay` accept these files with -p.

    The address contains a token, which is new each time unless MONITOR_WEB_TOKEN sets it. Anyone
    with the token can enrol, listen and forget. Needs the extra 'web'. Ctrl-C ends the program.
    """
    import secrets
    import threading

    from monitor.features.registry import make
    from monitor.population.templates import SLICE_SECONDS

    try:
        from monitor.serve.page import ListeningPage
        from monitor.serve.session import ServeSettings
        from monitor.serve.templates import TemplateFolder, data_folder
        from monitor.web.connections import Certificate
    except ModuleNotFoundError as error:
        raise UsageError(
            f"the page needs {error.name}: pip install 'speaker-disclosure-monitor[web]'"
        ) from None

    if options.enrol_seconds < SLICE_SECONDS:
        raise UsageError(f"enrol-seconds: a template needs at least {SLICE_SECONDS:g} s")
    if options.longest == 0:
        raise UsageError("invalid --for 0: use more than 0 seconds")
    if options.key is not None and options.certificate is None:
        raise UsageError("--key needs --certificate")
    certificate = (
        None if options.certificate is None else Certificate(options.certificate, options.key)
    )
    setup = feature_setup()
    templates = TemplateFolder(options.data or data_folder(), options.store)
    templates.prepare()
    if not templates.people():
        templates.check_place()
    token = options.web_token or secrets.token_urlsafe(16)
    with ExitStack() as stack:
        house = options.house.page()
        if house is not None:
            stack.callback(house.close)
        settings = ServeSettings(
            templates, options.enrol_seconds, options.longest, options.among, setup, house=house
        )
        page = stack.enter_context(
            ListeningPage(settings, *options.web, token=token, certificate=certificate)
        )
        make(settings.features, setup)  # so that visitors need not wait
        shown = page.url if options.web_token else f"{page.url}#{token}"
        say(f"open {shown}", err=False)
        say(f"templates are kept in {settings.templates.folder}; Ctrl-C ends")
        with suppress(KeyboardInterrupt):
            threading.Event().wait()
    return 0
