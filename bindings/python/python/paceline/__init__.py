"""Run XDP programs, TC classifiers and packet filters in user space.

    import paceline as pl

    fw = pl.load("firewall.o", program="firewall")
    fw.maps["rules"][{"port": 22, "protocol": 6}] = {"action": 1}
    assert fw.run(pl.packet("eth / ipv4 / tcp dport=22")).verdict == pl.DROP

`docs/PYTHON.md` has the whole of it.
"""

from __future__ import annotations

import atexit as _atexit
import os as _os
from typing import Any as _Any
from typing import Optional as _Optional
from typing import Union as _Union

from ._archive import scan, splits
from ._errors import (
    CaptureError,
    CaptureWarning,
    ChainError,
    FaultError,
    FilterError,
    InternalError,
    MapError,
    MapValueError,
    NetworkError,
    ObjectError,
    PacelineError,
    PacketError,
    ProgramError,
    VerifierError,
)
from ._maps import ANY, EXIST, NOEXIST, Bloom, Map, MapOfMaps, Maps, ProgramArray, Queue, RingBuffer
from ._packets import Packet, packet, read_capture
from ._paceline import (
    Batch,
    Chain,
    Collection,
    Column,
    Coverage,
    Event,
    Explanation,
    Fact,
    Filter,
    Lost,
    Network,
    Object,
    Program,
    Redirect,
    Replay,
    Run,
    Runner,
    Scan,
    Split,
    __version__,
    chain,
    classic_filter,
    engines,
    filter,
    map_states,
    merge_maps,
    replay,
)
from ._paceline import exiting as _exiting
from ._paceline import forked as _forked
from ._values import Enumerator, Struct, WrittenInt, WrittenTuple
from ._variables import Variables
from ._verdict import Verdict

ABORTED, DROP, PASS, TX, REDIRECT = Verdict

_os.register_at_fork(after_in_child=_forked)
_atexit.register(_exiting)

__all__ = [
    "ABORTED",
    "ANY",
    "DROP",
    "EXIST",
    "NOEXIST",
    "PASS",
    "REDIRECT",
    "TX",
    "Batch",
    "Bloom",
    "CaptureError",
    "CaptureWarning",
    "Chain",
    "ChainError",
    "Collection",
    "Column",
    "Coverage",
    "Enumerator",
    "Event",
    "Explanation",
    "Fact",
    "FaultError",
    "Filter",
    "FilterError",
    "InternalError",
    "Lost",
    "Map",
    "MapError",
    "MapOfMaps",
    "MapValueError",
    "Maps",
    "Network",
    "NetworkError",
    "Object",
    "ObjectError",
    "PacelineError",
    "Packet",
    "PacketError",
    "Program",
    "ProgramArray",
    "ProgramError",
    "Queue",
    "Redirect",
    "Replay",
    "RingBuffer",
    "Run",
    "Runner",
    "Scan",
    "Split",
    "Struct",
    "Variables",
    "Verdict",
    "VerifierError",
    "WrittenInt",
    "WrittenTuple",
    "__version__",
    "chain",
    "classic_filter",
    "engines",
    "filter",
    "load",
    "map_states",
    "merge_maps",
    "packet",
    "read_capture",
    "replay",
    "scan",
    "splits",
]


for _name in __all__:
    # Messages and documentation name the package, not the file that a class is in.
    if isinstance(_class := globals().get(_name), type) and _class.__module__.startswith("paceline."):
        try:
            _class.__module__ = "paceline"
        except TypeError:  # compiled classes say it themselves
            pass


def load(
    source: _Union[str, _os.PathLike[str], bytes, bytearray, memoryview],
    program: _Optional[str] = None,
    *,
    engine: _Optional[str] = None,
    cpus: int = 1,
    budget: _Optional[int] = None,
    verify: bool = True,
    coverage: _Optional[bool] = None,
    variables: _Optional[dict[str, _Any]] = None,
    locals: bool = False,
) -> Program:
    """Loads a program of an object file, verified and bound to its maps.

    `source` is the path of the object, or its bytes. `program` is the name of the program, and may be left out where there is only
    one. `engine` is one of `engines()`, the fastest by default. `cpus` is the number of CPUs with values of their own in per-CPU maps,
    and of threads that can run packets at a time. `budget` is the number of instructions that a program may run for one packet, on
    engines that count. `verify=False` takes a program that the verifier refuses, and checks it at run time. `coverage` counts how
    often lines and branches run. `variables` sets global variables, constants too, before the program is verified. `locals` reads the
    local variables of the source from the object's DWARF, for `why`, which takes time.

    Raises `OSError`, `ObjectError`, `ProgramError` and `VerifierError`.
    """
    options: dict[str, _Any] = {} if budget is None else {"budget": budget}
    loaded = Object(source, locals=locals).load(
        engine=engine, cpus=cpus, verify=verify, coverage=coverage, variables=variables, **options
    )
    return loaded.program(program)
