"""The front end of a monitor: what makes frames of its features, compared with the templates'."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from monitor.errors import UsageError
from monitor.features.registry import followed, make
from monitor.kinds import FeatureSpec
from monitor.kinds.following import Sensitivity
from monitor.marks import unlike_networks
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
        self._own: set[str] = set()
        self.use(own)

    @property
    def by_name(self) -> bool:
        """Whether another process, knowing the names alone, would compute the same."""
        return not self._own

    def use(self, features: Iterable[Feature]) -> None:
        """Compute these features with objects of one's own, before anything was heard.

        Raises:
            UsageError: one of them is not of the kind or size that the population has.
        """
        for feature in features:
            name = feature.spec.name
            if name not in self._names:
                raise UsageError(f"{name} is not listened for, only {', '.join(self._names)}")
            self._compare("this feature", feature.spec)
            self._made[name] = feature
            self._own.add(name)

    def check(self, source: Source) -> None:
        """See to it that ready-made frames are those that the templates were made of.

        Raises:
            UsageError: they are not.
        """
        given: Mapping[str, FeatureSpec] = getattr(source, "features", {})
        for name in self._names if given else ():
            if name not in given:
                raise UsageError(
                    f"{source.label} holds no frames of {name}, only of {', '.join(given)}; "
                    "choose others (--features)"
                )
            self._compare(source.label, given[name])

    def make(self) -> list[Feature]:
        """The features, ready to hear audio; made, and their networks loaded, once.

        Raises:
            UsageError: one is of another network than the templates, or cannot be computed here.
            StoreError: a network is out of reach.
        """
        for name in self._names:
            if name not in self._made:
                (made,) = make([name])
                self._compare_networks("this program", made.spec)
                self._made[name] = made
        return [self._made[name] for name in self._names]

    def followed(self) -> dict[str, Sensitivity]:
        """How each feature says that it is followed for changes; others are not followed."""
        made = self._made
        stated = {n: made[n].follow if n in made else followed(n) for n in self._names}
        return {name: how for name, how in stated.items() if how is not None}

    def _compare(self, label: str, spec: FeatureSpec) -> None:
        own = self._population.features[spec.name].spec
        if spec.kind is not own.kind or not own.kind.fits(spec.size, own.size):
            raise UsageError(
                f"{label}: {spec.name} comes as {spec}, the population has it "
                f"as {own}; make both with the same program"
            )
        self._compare_networks(label, spec)

    def _compare_networks(self, label: str, spec: FeatureSpec) -> None:
        enrolled = self._population.features[spec.name].spec.network
        if spec.network != enrolled:
            what = unlike_networks(spec.name, label, spec.network, "the population", enrolled)
            raise UsageError(
                f"{what}; enrol and calibrate again with this version (monitor enroll), or leave "
                f"{spec.name} out (--features)"
            )
