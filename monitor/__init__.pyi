from monitor import (
    alerts as alerts,
)
from monitor import (
    anonymisers as anonymisers,
)
from monitor import (
    corpus as corpus,
)
from monitor import (
    crowds as crowds,
)
from monitor import (
    errors as errors,
)
from monitor import (
    events as events,
)
from monitor import (
    features as features,
)
from monitor import (
    kinds as kinds,
)
from monitor import (
    lab as lab,
)
from monitor import (
    ledger as ledger,
)
from monitor import (
    maths as maths,
)
from monitor import (
    plots as plots,
)
from monitor import (
    population as population,
)
from monitor import (
    protocols as protocols,
)
from monitor import (
    run as run,
)
from monitor import (
    sinks as sinks,
)
from monitor import (
    sources as sources,
)
from monitor import (
    stream as stream,
)
from monitor import (
    tables as tables,
)
from monitor import (
    training as training,
)
from monitor import (
    transcripts as transcripts,
)
from monitor import (
    types as types,
)
from monitor.errors import MonitorError as MonitorError
from monitor.events.reading import Reading as Reading
from monitor.lab.attacks import attack as attack
from monitor.lab.evaluation import evaluate as evaluate
from monitor.lab.scoring import score as score
from monitor.population import Population as Population
from monitor.run import Measurement as Measurement
from monitor.run import Pool as Pool
from monitor.run import Run as Run
from monitor.run import measure as measure
from monitor.stream.monitor import Monitor as Monitor
from monitor.stream.plan import MonitorSettings as MonitorSettings
from monitor.tables import Readings as Readings
from monitor.training import calibrate as calibrate
from monitor.training import enrol as enrol
from monitor.version import __version__ as __version__

__all__: list[str]
_ROOMS: tuple[str, ...]
