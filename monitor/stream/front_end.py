"""The front end of a monitor: what makes frames of its features, compared with the templates'."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from monitor.errors import UsageError
from monitor.features.registry import make
from monitor.marks import network_of, unlike_networks
from monitor.population.population import Population
from monitor.protocols import Feature, Source

__all__ = ["FrontEnd"]


class FrontEnd:
    """The features that a monitor listens for; those of audio are made when they are needed.

    A feature, or a source of ready-made frames, is refused unless it makes the same frames as the
    templates were made of: of the same kind and size, by the same network.

    Args:
        population: the templates.
        names: of the features.
        own: objects to use instead of the program's own, for some of them.

    Raises:
        UsageError: one of them does not fit the population.
    """

    def __init__(
        self, population: Population, names: Sequence[str], own: Iterable[Feature] = ()
    ) -> None:
        self._population, self._names = population, tuple(names)
        self._made: dict[str, Feature] = {}
        self.use(own)

    def use(self, features: Iterable[Feature]) -> None:
        """Compute these features with objects of one's own, before anything was heard.

        Raises:
            UsageError: one of them is not of the kind or size that the population has.
        """
        for feature in features:
            network = network_of(feature)
            self._compare("this feature", feature.name, feature.size, feature.kind, network)
            self._made[feature.name] = feature

    def check(self, source: Source) -> None:
        """See to it that ready-made frames are those that the templates were made of.

        Raises:
            UsageError: they are not.
        """
        given: Mapping[str, tuple[int, str, float]] = getattr(source, "features", {})
        marks: Mapping[str, str] = getattr(source, "networks", {})
        for name in self._names if given else ():
            if name not in given:
                raise UsageError(
                    f"{source.label} holds no frames of {name}, only of {', '.join(given)}; "
                    "choose others (--features)"
                )
            size, kind, _ = given[name]
            self._compare(source.label, name, size, kind, marks.get(name))

    def make(self) -> list[Feature]:
        """The features, ready to hear audio; made, and their networks loaded, once.

        Raises:
            UsageError: one is of another network than the templates, or cannot be computed here.
            StoreError: a network is out of reach.
        """
        for name in self._names:
            if name not in self._made:
                (made,) = make([name])
                self._compare_networks("this program", name, network_of(made))
                self._made[name] = made
        return [self._made[name] for name in self._names]

    def _compare(self, label: str, name: str, size: int, kind: str, network: str | None) -> None:
        own = self._population.features[name]
        if kind != own.kind or size > own.size:
            raise UsageError(
                f"{label}: {name} comes as {kind} of size {size}, the population has it "
                f"as {own.kind} of size {own.size}; make both with the same program"
            )
        self._compare_networks(label, name, network)

    def _compare_networks(self, label: str, name: str, network: str | None) -> None:
        enrolled = self._population.features[name].network
        if network != enrolled:
            what = unlike_networks(name, label, network, "the population", enrolled)
            raise UsageError(
                f"{what}; enrol and calibrate again with this version (monitor enroll), or leave "
                f"{name} out (--features)"
            )
