"""The pytest plugin: fixtures for objects and captures, packets compared by their layers, verdicts explained, coverage of all tests in one
file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

import pytest

if TYPE_CHECKING:
    import paceline as pl

#: Lines of a comparison that are shown without `-v`.
_SHOWN = 30


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("paceline")
    group.addoption(
        "--paceline-coverage",
        metavar="FILE",
        help="Count how often lines and branches of BPF programs run, and write it to FILE in LCOV's format.",
    )
    parser.addini("paceline_objects", "Directory of object files, for the fixture `load_object`.", default="")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "paceline(object, program=None, maps={}, **options): what the fixture `program` loads: the object file, the program, "
        "elements of maps by name, and options of `paceline.load`.",
    )
    from paceline import _paceline

    _paceline.keep_asked(True)
    if config.getoption("paceline_coverage"):
        _paceline.record_coverage(True)


def pytest_unconfigure() -> None:
    from paceline import _paceline

    _paceline.keep_asked(False)


_TOTALS = pytest.StashKey[dict[str, tuple[int, int]]]()
#: Reports of the workers of pytest-xdist.
_WORKERS = pytest.StashKey[list[str]]()


def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    path = config.getoption("paceline_coverage")
    if not path:
        return
    from paceline import _lcov, _paceline

    _paceline.record_coverage(False)
    report = _paceline.recorded_coverage().lcov()
    output = getattr(config, "workeroutput", None)
    if output is not None:
        output["paceline_coverage"] = report
        return
    report = _lcov.merge([report, *config.stash.get(_WORKERS, [])])
    Path(path).write_text(report, encoding="utf-8")
    config.stash[_TOTALS] = _lcov.totals(report)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """A worker of pytest-xdist is done."""
    report = getattr(node, "workeroutput", {}).get("paceline_coverage")
    if report:
        node.config.stash.setdefault(_WORKERS, []).append(report)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    totals = config.stash.get(_TOTALS, None)
    if totals is None:
        return
    terminalreporter.section("BPF coverage")
    for name, (ran, there) in totals.items():
        share = f", {100 * ran / there:.1f}%" if there else ""
        terminalreporter.write_line(f"{name}: {ran} of {there}{share}")
    terminalreporter.write_line(f"written to {config.getoption('paceline_coverage')}")


def pytest_assertrepr_compare(config: pytest.Config, op: str, left: object, right: object) -> Optional[list[str]]:
    """Packets that differ are shown by their fields. One side is a `Packet` or a packet of Scapy, the other may be bytes.

    A verdict is shown with the reason for it.
    """
    from paceline import Packet, Verdict

    if isinstance(left, Verdict) or isinstance(right, Verdict):
        return _explained(f"{left!r} {op} {right!r}", left, right)
    if op != "==":
        return None
    if not (_is_packet(left) or _is_packet(right)):
        return None
    try:
        ours, theirs = Packet(left), Packet(right)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    if ours == theirs:
        return None
    lines = ["packets differ", f"  left:  {ours.layers}", f"  right: {theirs.layers}"]
    differences = ours.differences(theirs)
    for name, before, after in differences:
        lines.append(f"  {name}: {_shown(before)} != {_shown(after)}")
    if config.get_verbosity() == 0 and len(lines) > _SHOWN:
        lines = [*lines[:_SHOWN], f"  ... and {len(lines) - _SHOWN} more, -v shows all"]
    return lines


def _explained(comparison: str, left: object, right: object) -> Optional[list[str]]:
    from paceline import PacelineError, _paceline

    run = _paceline.asked()
    if run is None or run.verdict not in (left, right):
        return None
    try:
        return [comparison, f"the packet was {run.why()}"]
    except PacelineError as error:
        return [comparison, f"not explained: {error}"]


def _shown(value: Optional[str]) -> str:
    return "nothing" if value is None else value


def _is_packet(value: object) -> bool:
    from paceline import Packet

    return isinstance(value, Packet) or type(value).__module__.startswith("scapy.")


@pytest.fixture
def load_object(request: pytest.FixtureRequest) -> Callable[..., pl.Program]:
    """Loads objects: `load_object("firewall.o", program="firewall")`, each call with maps of its own.

    Paths are relative to the setting `paceline_objects`, or to the directory of the test file.
    """
    import paceline as pl

    def load(path: Any, program: Optional[str] = None, **options: Any) -> pl.Program:
        return pl.load(_found(request, path), program, **options)

    return load


def _found(request: pytest.FixtureRequest, path: Any) -> Path:
    directory = request.config.getini("paceline_objects")
    base: Path = request.config.rootpath / directory if directory else request.path.parent
    return base.joinpath(path)


@pytest.fixture
def program(request: pytest.FixtureRequest, load_object: Callable[..., pl.Program]) -> pl.Program:
    """The program that the marker `paceline` names, with the elements of maps that it gives."""
    marker = request.node.get_closest_marker("paceline")
    if marker is None or not marker.args:
        raise pytest.UsageError("the fixture `program` needs @pytest.mark.paceline('object.o', program=..., maps={...})")
    options = dict(marker.kwargs)
    elements = options.pop("maps", {})
    loaded: pl.Program = load_object(*marker.args, **options)
    for name, contents in elements.items():
        loaded.maps[name].update(contents)
    return loaded


@pytest.fixture
def maps(program: pl.Program) -> pl.Maps:
    """The maps of the fixture `program`."""
    return program.maps


@pytest.fixture
def capture(request: pytest.FixtureRequest) -> Callable[[Any], Iterator[pl.Packet]]:
    """Reads captures: `for packet in capture("traffic.pcap")`; paths as in `load_object`."""
    import paceline as pl

    def read(path: Any) -> Iterator[pl.Packet]:
        return pl.read_capture(_found(request, path))

    return read
