"""The compiled part of the package."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from os import PathLike
from typing import Any, Literal, Optional, SupportsBytes, Union, final

from typing_extensions import disjoint_base

from ._maps import Maps
from ._variables import Variables
from ._verdict import Verdict

_Path = Union[str, PathLike[str]]
_Bytes = Union[bytes, bytearray, memoryview]
_Packet = Union[_Bytes, SupportsBytes]
_Interface = Union[int, str]
_Time = Union[int, datetime]

__version__: str

def engines() -> list[str]:
    """Names of the engines of this machine, the fastest first."""

@disjoint_base
class Runner:
    """What packets run through: the base of `Program`, `Chain` and `Filter`."""

    def run(
        self,
        packet: _Packet,
        *,
        ingress: Optional[_Interface] = None,
        queue: int = 0,
        context: Optional[dict[str, Union[int, Sequence[int]]]] = None,
        time: Optional[_Time] = None,
        seed: Optional[int] = None,
        network: Optional[Network] = None,
        metadata: Optional[bytes] = None,
        explain: bool = False,
    ) -> Run:
        """Runs one packet, from its Ethernet header on.

        It comes in on the interface `ingress` (an index, or a name in `network`; the loopback interface by default) and on `queue`, with
        `metadata` before it. `context` has fields of `__sk_buff` that it arrives with at a TC classifier, by name: `{"mark": 5, "cb": [1, 2]}`. `time` is the time on every clock of the program, in nanoseconds since 1970 or as a datetime; without it
        programs see the machine's clocks. `seed` begins the random numbers anew. `explain` records the run for `why()`, on the plain
        interpreter. Raises `PacketError` for a packet longer than 65535 bytes.
        """

    def run_many(
        self,
        packets: Any,
        *,
        columns: Optional[list[str]] = None,
        ingress: Optional[_Interface] = None,
        queue: int = 0,
        context: Optional[dict[str, Union[int, Sequence[int]]]] = None,
        time: Optional[_Time] = None,
        seed: Optional[int] = None,
        network: Optional[Network] = None,
    ) -> Batch:
        """Runs many packets in order, and gives columns about them, `verdict` by default.

        `packets` is an Arrow array, column or stream of binaries (or a table with a column `data`), a two-dimensional NumPy array of
        bytes, or any iterable of packets. Other threads of Python run meanwhile.
        """

@final
class Program(Runner):
    """A program that is bound to its maps."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str:
        """`xdp`, `socket_filter` or `sched_cls`."""

    @property
    def engine(self) -> str: ...
    @property
    def file(self) -> Optional[str]: ...
    @property
    def maps(self) -> Maps:
        """The maps of the object, which all its programs share."""

    @property
    def variables(self) -> Variables:
        """The global variables of the object."""

    def coverage(self) -> Coverage:
        """How often lines and branches of the object's programs ran so far, if it was loaded with `coverage=True`."""

    def _install(self, map: RawMap, index: int) -> None: ...

@final
class Object:
    """The programs and maps of an object file; nothing is made yet."""

    def __new__(cls, source: Union[_Path, _Bytes], *, locals: bool = False) -> Object: ...
    @classmethod
    def from_classic(cls, name: str, text: str) -> Object:
        """An object of one XDP program that passes what a classic filter takes, from the text of `tcpdump -d`, `-dd` or `-ddd`."""

    @property
    def file(self) -> Optional[str]: ...
    @property
    def programs(self) -> list[str]: ...
    @property
    def maps(self) -> list[str]: ...
    @property
    def license(self) -> str: ...
    def verify(self, program: Optional[str] = None) -> None:
        """Verifies a program, or all; raises `VerifierError` if one is refused."""

    def load(
        self,
        *,
        engine: Optional[str] = None,
        cpus: int = 1,
        budget: int = ...,
        verify: bool = True,
        coverage: Optional[bool] = None,
        variables: Optional[dict[str, Any]] = None,
    ) -> Collection:
        """Makes the maps and fills them; the options are those of `paceline.load`."""

@final
class Collection:
    """The maps of an object, made and filled, and its programs."""

    @property
    def programs(self) -> list[str]: ...
    def program(self, name: Optional[str] = None) -> Program:
        """The program of a name, verified and bound to the maps; the only one without a name."""

    @property
    def maps(self) -> Maps: ...
    @property
    def variables(self) -> Variables: ...
    @property
    def engine(self) -> str: ...
    def coverage(self) -> Coverage: ...

@final
class Run:
    """What became of a packet."""

    @property
    def verdict(self) -> Verdict: ...
    @property
    def code(self) -> int:
        """The program's return value in the numbers of its type; for socket filters the number of bytes to keep."""

    @property
    def action(self) -> Optional[str]:
        """The name of the return value, such as `XDP_DROP` or `TC_ACT_SHOT`, if it has one."""

    @property
    def context(self) -> Optional[dict[str, int]]:
        """The fields of `__sk_buff` that a TC classifier left, by name; `cb[0]` is the first word of `cb`."""

    @property
    def data(self) -> bytes:
        """The packet as the program left it."""

    @property
    def input(self) -> bytes:
        """The packet as it came in."""

    @property
    def metadata(self) -> bytes:
        """The bytes before the packet, as the program left them."""

    @property
    def redirect(self) -> Optional[Redirect]:
        """Where the packet is redirected to, if that is the verdict."""

    @property
    def events(self) -> list[Event]:
        """Events that the program sent to perf event arrays."""

    @property
    def trace(self) -> list[str]:
        """Lines of `bpf_trace_printk`."""

    def why(self) -> Explanation:
        """Why the program did what it did: by another run, which leaves maps as they are, unless `run` recorded it.

        Raises `ProgramError` if that run would end otherwise, because maps, time or random numbers are others now.
        """

@final
class Redirect:
    """Where a packet is redirected to."""

    @property
    def interface(self) -> Optional[int]:
        """Index of the interface (`bpf_redirect`)."""

    @property
    def map(self) -> Optional[str]:
        """Name of the map (`bpf_redirect_map`)."""

    @property
    def key(self) -> Optional[int]:
        """Key in the map."""

    @property
    def flags(self) -> int: ...

@final
class Explanation:
    """Why a program or chain did what it did with a packet. As text it is the sentence."""

    @property
    def sentence(self) -> str:
        """`dropped at firewall.bpf.c:189 because denied[1].protocol is 6`"""

    @property
    def verdict(self) -> Verdict: ...
    @property
    def line(self) -> Optional[int]:
        """Source line of the branch that decided, or of the end of the run if none did."""

    @property
    def file(self) -> Optional[str]:
        """File of the line."""

    @property
    def source(self) -> Optional[str]:
        """Text of the line."""

    @property
    def program(self) -> Optional[str]:
        """Name of the program that ended the run."""

    @property
    def facts(self) -> list[Fact]:
        """The values that decided."""

    @property
    def data(self) -> list[dict[str, Any]]:
        """All that happened, program by program, as `programs` of `paceline why --json`."""

@final
class Fact:
    """A value that a branch depends on."""

    @property
    def kind(self) -> Literal["packet", "context", "element", "value", "result", "variable", "other"]: ...
    @property
    def name(self) -> str:
        """`tcp.dport`, `rules[{port: 22}].action`, `bpf_fib_lookup`."""

    @property
    def value(self) -> str: ...
    @property
    def text(self) -> str:
        """Both, in words."""

@final
class Event:
    """An event that a program sent to a perf event array."""

    @property
    def map(self) -> str: ...
    @property
    def cpu(self) -> int: ...
    @property
    def packet(self) -> Optional[int]:
        """Number of the packet in the run, from 1."""

    @property
    def time(self) -> int:
        """Nanoseconds of the clock that programs see."""

    @property
    def data(self) -> bytes: ...
    @property
    def captured(self) -> bytes:
        """Bytes of the packet, as many as the program asked for."""

@final
class Batch:
    """Columns about packets: an Arrow record batch, which pyarrow, Polars, pandas and DuckDB take as a table."""

    @property
    def column_names(self) -> list[str]: ...
    @property
    def events(self) -> list[Event]: ...
    @property
    def trace(self) -> list[str]: ...
    def column(self, name: str) -> Column: ...
    def __getitem__(self, name: str, /) -> Column: ...
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: Optional[object] = None) -> tuple[object, object]: ...
    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object: ...

@final
class Column:
    """A column of a batch: an Arrow array."""

    @property
    def name(self) -> str: ...
    def to_list(self) -> list[Any]:
        """The values as int, str, bytes and `None`, times in nanoseconds: for those who have no Arrow library."""

    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: Optional[object] = None) -> tuple[object, object]: ...

@final
class Replay:
    """A capture that runs through a program or chain: an iterator of batches, and an Arrow stream."""

    def __iter__(self) -> Replay: ...
    def __next__(self) -> Batch: ...
    @property
    def verdicts(self) -> dict[str, int]:
        """Packets of each verdict so far."""

    @property
    def packets(self) -> int:
        """Packets so far."""

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object: ...

def replay(
    capture: Union[_Path, _Bytes],
    runner: Runner,
    *,
    columns: Optional[list[str]] = None,
    batch_size: int = 8192,
    count: Optional[int] = None,
    ingress: Optional[_Interface] = None,
    queue: int = 0,
    context: Optional[dict[str, Union[int, Sequence[int]]]] = None,
    clock: Literal["packets", "system"] = "packets",
    seed: Optional[int] = None,
    network: Optional[Network] = None,
) -> Replay:
    """Runs a capture, pcap or pcapng, through a program, chain or filter.

    `columns` are some of `number`, `time`, `interface`, `original_length`, `captured_length`, `length`, `verdict`, `code`,
    `redirect_interface`, `redirect_key`, `input`, `data` and `metadata`. `count` is the number of packets to stop after. Programs see the
    times of the packets, or those of the machine with `clock="system"`. What is damaged raises `CaptureError` after the batch before it.
    """

@final
class Lost:
    """Bytes of a capture that gave no packets."""

    @property
    def capture(self) -> str: ...
    @property
    def start(self) -> int:
        """Offset of the first byte; in a compressed capture, of the decompressed bytes."""

    @property
    def end(self) -> int:
        """Offset after the last byte."""

    @property
    def damage(self) -> str:
        """The reason."""

@final
class Split:
    """A part of a capture: plain data, which can be pickled."""

    def __new__(cls, capture: str, split: Optional[tuple[bytes, int, int, int, int, bool, bool]]) -> Split: ...
    @property
    def capture(self) -> str:
        """Path or URL of the capture."""

    @property
    def start(self) -> int:
        """Offset of the first record."""

    @property
    def end(self) -> Optional[int]:
        """Offset after the last record; `None` if the part is the whole capture."""

    def __reduce__(self) -> tuple[type[Split], tuple[str, Optional[tuple[bytes, int, int, int, int, bool, bool]]]]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Scan:
    """Captures that are scanned by threads: an iterator of batches, and an Arrow stream."""

    def __iter__(self) -> Scan: ...
    def __next__(self) -> Batch: ...
    @property
    def packets(self) -> int:
        """Packets that were read so far."""

    @property
    def matched(self) -> int:
        """Packets that match so far."""

    @property
    def verdicts(self) -> dict[str, int]:
        """Packets of each verdict so far."""

    @property
    def lost(self) -> list[Lost]:
        """Bytes that gave no packets, at the end."""

    @property
    def program(self) -> Optional[Runner]:
        """The program. Its maps are those of all threads, at the end."""

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object: ...

def _scan(
    given: list[tuple[str, Any, Optional[Split]]],
    filter: Union[str, Filter, None],
    programs: list[Runner],
    merge: Union[str, dict[str, str], None],
    columns: Optional[list[str]],
    workers: Optional[int],
    batch_size: int,
    engine: Optional[str],
) -> Scan: ...
def _splits(name: str, source: Any, parts: int, walk: bool) -> list[Split]: ...
def map_states(program: Program, rules: Union[str, dict[str, str]]) -> dict[str, dict[bytes, bytes]]:
    """The elements of a program's maps that a rule names, as plain data for `merge_maps`."""

def merge_maps(program: Program, rules: Union[str, dict[str, str]], states: list[dict[str, dict[bytes, bytes]]]) -> None:
    """Sets the maps of a program to what several others made of the same maps, as `map_states` gives them.

    `rules` are as for `scan`. The maps of the program are as those of the others were at their begin. Raises `MapError`.
    """

@final
class Chain(Runner):
    """Programs that run one after the other, compiled to one function. It may change while packets run."""

    @classmethod
    def from_file(
        cls,
        path: _Path,
        *,
        engine: Optional[str] = None,
        cpus: int = 1,
        budget: int = ...,
        verify: bool = True,
        coverage: Optional[bool] = None,
    ) -> Chain:
        """Loads a chain file (docs/CHAINS.md), with the objects, maps and filters that it names; `engine`, `cpus`, `budget`, `verify` and
        `coverage` are those of `paceline.load`.

        Raises `ChainError` with the place in the file, `OSError` if the file itself cannot be read, and `VerifierError`.
        """

    @property
    def maps(self) -> dict[str, Maps]:
        """The maps of each program, by its name in the chain; filters have none. Programs of one object share theirs."""

    @property
    def names(self) -> list[str]:
        """Names of the programs, in their order."""

    @property
    def revision(self) -> int:
        """Number of changes so far."""

    def add(self, program: _Member, *, before: Optional[str] = None) -> None: ...
    def remove(self, name: str) -> None: ...
    def replace(self, name: str, program: _Member) -> None: ...

_Member = Union[Program, Filter, tuple[str, Union[Program, Filter]]]

def chain(
    programs: Iterable[_Member], *, order: Literal["given", "priority"] = "given", cpus: Optional[int] = None
) -> Chain:
    """A chain of programs and filters, each alone or with a name; equal names get numbers. It runs on as many CPUs as all have.

    In the given order a program runs if the verdict of the one before is one of its actions, pass by default. By priority the order is
    libxdp's. Raises `ChainError`.
    """

@final
class Filter(Runner):
    """A packet filter: a program that passes what matches, and drops the rest."""

    @property
    def expression(self) -> str: ...
    def matches(self, packet: _Packet) -> bool: ...
    def __call__(self, packet: _Packet) -> bool: ...

def filter(expression: str, *, engine: Optional[str] = None) -> Filter:
    """A filter from an expression of tcpdump, by the libpcap of the machine. Raises `FilterError`."""

def classic_filter(program: str, *, engine: Optional[str] = None) -> Filter:
    """A filter from a classic program, as `tcpdump -d`, `-dd` or `-ddd` print it. Raises `FilterError`."""

@final
class Network:
    """A network that programs see, from what `ip -j`, `ss -tuan`, `conntrack -L` and `sysctl` print, one after the other."""

    def __new__(cls, text: str) -> Network: ...
    @classmethod
    def read(cls, path: Union[_Path, _Bytes]) -> Network:
        """From a file."""

    @classmethod
    def of_host(cls) -> Network:
        """This machine's."""

    @property
    def interfaces(self) -> list[tuple[int, str]]: ...

@final
class Coverage:
    """How often lines, functions and branches of programs ran. Sums are made with `+`."""

    def __add__(self, other: Coverage, /) -> Coverage: ...
    @property
    def totals(self) -> dict[str, tuple[int, int]]:
        """Numbers that ran and numbers there are, of `lines`, `functions` and `branches`."""

    @property
    def lines(self) -> dict[str, dict[int, int]]:
        """How often each line ran, by file and number."""

    def lcov(self, test: str = "") -> str:
        """The report in LCOV's format."""

    def write_lcov(self, path: _Path, test: str = "") -> None: ...

def record_coverage(on: bool) -> None: ...
def keep_asked(on: bool) -> None: ...
def asked() -> Optional[Run]: ...
def recorded_coverage() -> Coverage: ...
def forked() -> None: ...
def exiting() -> None: ...
def build_packet(text: str) -> bytes: ...
def layers_text(packet: _Packet) -> str: ...
def layer_names(packet: _Packet) -> list[str]: ...
def packet_field(packet: _Packet, path: str) -> Optional[Union[int, str]]: ...
def packet_differences(first: _Packet, second: _Packet) -> list[tuple[str, Optional[str], Optional[str]]]: ...
def nothing(packet: bytes) -> int: ...
def panic() -> None: ...
def object_of_case(case: str) -> Object: ...

@final
class RawMap:
    """A map by the types of its object; `paceline._maps` makes mappings of it."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def key_size(self) -> int: ...
    @property
    def value_size(self) -> int: ...
    @property
    def max_entries(self) -> int: ...
    @property
    def id(self) -> int: ...
    @property
    def cpus(self) -> int: ...
    @property
    def is_frozen(self) -> bool: ...
    @property
    def form(self) -> str: ...
    def plain(self) -> RawMap: ...
    def get(self, key: Any) -> Any: ...
    def set(self, key: Any, value: Any, flags: int = 0) -> None: ...
    def delete(self, key: Any) -> None: ...
    def contains(self, key: Any) -> bool: ...
    def len(self) -> int: ...
    def keys(self) -> list[Any]: ...
    def items(self) -> list[tuple[Any, Any]]: ...
    def lookup_many(self, keys: Iterable[Any]) -> list[Optional[Any]]: ...
    def update_many(self, elements: Any) -> int: ...
    def update_arrow(self, table: Any) -> int: ...
    def to_arrow(self) -> Batch: ...
    def clear(self) -> None: ...
    def freeze(self) -> None: ...
    def push(self, value: Any, flags: int = 0) -> None: ...
    def pop(self) -> Any: ...
    def peek(self) -> Any: ...
    def values(self) -> list[Any]: ...
    def may_contain(self, value: Any) -> bool: ...
    def records(self) -> list[bytes]: ...
    def inner(self, key: Any) -> RawMap: ...
    def make_inner(self) -> RawMap: ...
    def set_inner(self, key: Any, inner: RawMap) -> None: ...
    def uninstall(self, index: int) -> bool: ...
    def installed(self, index: int) -> Optional[str]: ...

@final
class RawVariables:
    """Global variables; `paceline._variables` makes a mapping of it."""

    def names(self) -> list[str]: ...
    def get(self, name: str) -> Any: ...
    def set(self, name: str, value: Any) -> None: ...
