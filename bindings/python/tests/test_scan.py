"""Archives: scans of many captures, parts of captures, and engines that read them by several processes."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import random
import struct
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import paceline as pl

from .conftest import library, missing

COLUMNS = ["capture", "offset", "time", "data"]


def long(examples: Path, times: int) -> bytes:
    """The example capture so many times, each with another time."""
    capture = (examples / "traffic.pcap").read_bytes()
    header, records = capture[:24], capture[24:]
    starts, at = [], 0
    while at < len(records):
        starts.append(at)
        at += 16 + struct.unpack_from("<I", records, at + 8)[0]
    parts = [header]
    for number in range(times):
        again = bytearray(records)
        for start in starts:
            (seconds,) = struct.unpack_from("<I", again, start)
            struct.pack_into("<I", again, start, seconds + number)
        parts.append(bytes(again))
    return b"".join(parts)


@pytest.fixture(scope="module")
def capture(examples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("captures") / "long.pcap"
    path.write_bytes(long(examples, 200))
    return path


def rows(scan: pl.Scan) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for batch in scan:
        found.extend(zip(*(batch[name].to_list() for name in batch.column_names)))
    return found


def test_any_source_gives_the_same_packets(examples: Path, capture: Path, tmp_path: Path) -> None:
    fsspec = library("fsspec")
    tcp = pl.filter("tcp")
    data = capture.read_bytes()
    zipped = tmp_path / "long.pcap.gz"
    zipped.write_bytes(gzip.compress(data, 1))
    with fsspec.open("memory://long.pcap", "wb") as file:
        file.write(data)
    columns = COLUMNS[1:]
    expected = rows(pl.scan(capture, "tcp", columns=columns, workers=1))
    assert len(expected) == 200 * sum(tcp(packet) for packet in pl.read_capture(examples / "traffic.pcap"))
    with open(capture, "rb") as file:
        sources: dict[str, Any] = {
            "path": str(capture),
            "pattern": str(capture.with_name("l*.pcap")),
            "bytes": data,
            "view": memoryview(data),
            "file": file,
            "file in memory": io.BytesIO(data),
            "url": "memory://long.pcap",
            "gzip": zipped,
            "parts": pl.splits(capture, 7),
            "parts of a url": pl.splits("memory://long.pcap", 3),
        }
        for name, source in sources.items():
            for workers in (1, 2):
                scan = pl.scan(source, tcp if workers == 1 else "tcp", columns=columns, workers=workers)
                assert rows(scan) == expected, name
                assert (scan.packets, scan.matched, scan.lost) == (200 * 492, len(expected), [])
    both = rows(pl.scan([capture, examples / "traffic.pcap"], "tcp", columns=["capture"]))
    assert both == [(str(capture),)] * len(expected) + [(str(examples / "traffic.pcap"),)] * (len(expected) // 200)


def test_batches_are_for_every_library(capture: Path) -> None:
    pa, polars, duckdb = library("pyarrow"), library("polars"), library("duckdb")
    table = pa.table(pl.scan(capture, "udp"))
    assert table.column_names == ["capture", "offset", "time", "original_length", "captured_length", "data"]
    assert polars.DataFrame(pl.scan(capture, "udp")).height == table.num_rows
    packets = pa.RecordBatchReader.from_stream(pl.scan(capture, "udp", batch_size=100))
    (answer,) = duckdb.sql("select count(*), sum(captured_length) from packets").fetchall()
    assert answer == (table.num_rows, sum(table["captured_length"].to_pylist()))


def test_a_stream_of_a_file_of_python_ends(examples: Path, capture: Path) -> None:
    # Threads of the scan need the interpreter while the stream is read.
    with open(capture, "rb") as file:
        batch = pl.load(examples / "firewall.o").run_many(pl.scan(file, "tcp", columns=["data"], workers=2))
    assert len(batch) == 200 * len(rows(pl.scan(examples / "traffic.pcap", "tcp", columns=["offset"])))


def test_a_million_packets_equal_the_output_of_the_command(examples: Path, tmp_path: Path) -> None:
    command = os.environ.get("PACELINE_COMMAND")
    if command is None:
        missing("PACELINE_COMMAND", "no path of the command")
    pa, parquet = library("pyarrow"), library("pyarrow.parquet").parquet
    path, table, out = tmp_path / "million.pcap", tmp_path / "table.parquet", tmp_path / "out.pcap"
    path.write_bytes(long(examples, 2050))
    firewall = str(examples / "firewall.o")
    arguments = [command, "scan", "", str(path), "--program", firewall, "--parquet", str(table), "--out", str(out)]
    subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL)
    ours = pa.table(pl.scan(path, program=pl.load(firewall)))
    theirs = parquet.read_table(table)
    assert ours.num_rows > 1_000_000 and theirs.column_names == ours.column_names
    for name in ours.column_names:
        assert ours[name].cast(theirs[name].type).equals(theirs[name]), name
    # And byte for byte as a capture: what is not dropped.
    passed = ours.filter(pa.compute.not_equal(ours["verdict"].cast("string"), "drop"))
    records = [path.read_bytes()[:24]]
    for time, original, data in zip(passed["time"].cast("int64").to_pylist(), passed["original_length"].to_pylist(), passed["data"]):
        packet = data.as_py()
        records.append(struct.pack("<IIII", time // 10**9, time % 10**9 // 1000, len(packet), original) + packet)
    assert out.read_bytes() == b"".join(records)


def load() -> pl.Program:
    return pl.load(Path(__file__).resolve().parents[3] / "examples/counter.o")


def maps(program: pl.Program) -> dict[str, Any]:
    return {name: {str(key): str(value) for key, value in program.maps[name].items()} for name in ("by_ethertype", "by_protocol", "by_size")}


def test_maps_of_workers_become_one(capture: Path) -> None:
    one = load()
    assert rows(pl.scan(capture, program=one, columns=["verdict"])) == [("pass",)] * (200 * 492)
    scan = pl.scan(capture, program=load, workers=3, merge="sum", columns=["verdict"])
    assert len(rows(scan)) == 200 * 492 and scan.verdicts["pass"] == 200 * 492
    assert isinstance(scan.program, pl.Program) and maps(scan.program) == maps(one)
    # The same by hand, as processes do it.
    states, rules = [], {"by_size": "sum", "*": "sum"}
    for split in pl.splits(capture, 3, walk=True):
        program = load()
        rows(pl.scan(split, program=program))
        states.append(pickle.loads(pickle.dumps(pl.map_states(program, rules))))
    joined = load()
    pl.merge_maps(joined, rules, states)
    assert maps(joined) == maps(one)


def test_what_cannot_become_one_is_refused(capture: Path) -> None:
    with pytest.raises(pl.MapError, match="no rule says"):
        pl.scan(capture, program=load, workers=2)
    with pytest.raises(pl.MapError, match="rule union is not for"):
        pl.scan(capture, program=load, workers=2, merge={"by_size": "union", "*": "sum"})
    with pytest.raises(pl.MapError, match="there is no map sizes"):
        pl.scan(capture, program=load, workers=2, merge={"sizes": "sum", "*": "sum"})
    with pytest.raises(ValueError, match="none of sum, union, fixed"):
        pl.scan(capture, program=load, workers=2, merge="add")
    with pytest.raises(ValueError, match="a function that loads one"):
        pl.scan(capture, program=load(), workers=2, merge="sum")
    program = load()
    with pytest.raises(ValueError, match="loads anew"):
        pl.scan(capture, program=lambda: program, workers=2, merge="sum")
    with pytest.raises(pl.MapError, match="one changed it"):
        rows(pl.scan(capture, program=load, workers=2, merge={"by_size": "fixed", "*": "sum"}))


def firewall(examples: Path) -> pl.Program:
    program = pl.load(examples / "firewall.o")
    program.maps["rules"][{"port": 22, "protocol": 6}] = {"action": 1}
    return program


def test_sets_of_several_workers_become_one(examples: Path, capture: Path) -> None:
    def with_addresses() -> pl.Program:
        program = firewall(examples)
        program.maps["blocked_v4"].update({"198.18.0.9": 0, "198.18.0.10": 0}.items())
        return program

    rules = {"blocked_v4": "union", "*": "sum"}
    scan = pl.scan(capture, program=with_addresses, workers=2, merge=rules, columns=["verdict"])
    assert len(rows(scan)) == 200 * 492
    assert isinstance(scan.program, pl.Program)
    assert dict(scan.program.maps["blocked_v4"]) == dict(with_addresses().maps["blocked_v4"])
    # What each of two processes adds is in the union.
    states = []
    for address in ("198.18.0.11", "198.18.0.12"):
        program = with_addresses()
        program.maps["blocked_v4"][address] = 0
        states.append(pl.map_states(program, rules))
    joined = with_addresses()
    pl.merge_maps(joined, rules, states)
    assert all(f"198.18.0.{last}" in joined.maps["blocked_v4"] for last in (9, 10, 11, 12))
    assert len(joined.maps["blocked_v4"]) == 4


def test_a_filter_and_a_program_in_one_scan(examples: Path, capture: Path) -> None:
    tcp, alone = pl.filter("tcp"), firewall(examples)
    packets = [bytes(packet) for packet in pl.read_capture(examples / "traffic.pcap")]
    expected = [alone.run(packet).verdict.name.lower() for packet in packets if tcp(packet)]
    assert len(set(expected)) > 1 and len(expected) < len(packets)
    for workers in (1, 2):
        load = lambda: firewall(examples)  # noqa: E731
        scan = pl.scan(examples / "traffic.pcap", tcp, program=load, workers=workers, merge="sum", columns=["verdict"])
        assert [verdict for (verdict,) in rows(scan)] == expected
        # The program ran for packets that match, and for no others.
        assert sum(scan.verdicts.values()) == len(expected) == scan.matched and scan.packets == len(packets)


def test_a_chain_is_the_program_of_a_scan(examples: Path) -> None:
    def chain() -> pl.Chain:
        return pl.chain([("count", load()), ("firewall", firewall(examples))])

    alone = chain()
    packets = [bytes(packet) for packet in pl.read_capture(examples / "traffic.pcap")]
    expected = [alone.run(packet).verdict.name.lower() for packet in packets]
    scan = pl.scan(examples / "traffic.pcap", program=chain(), columns=["verdict"])
    assert [verdict for (verdict,) in rows(scan)] == expected
    assert isinstance(scan.program, pl.Chain) and maps_of(scan.program) == maps_of(alone)
    with pytest.raises(TypeError, match="several workers run programs, not chains"):
        pl.scan(examples / "traffic.pcap", program=chain, workers=2, merge="sum")


def maps_of(chain: pl.Chain) -> dict[str, str]:
    maps = chain.maps["count"]
    return {name: str(sorted(map(str, maps[name].items()))) for name in ("by_ethertype", "by_protocol", "by_size")}


def zstd(data: bytes) -> bytes:
    """A frame of Zstandard (RFC 8878) with blocks that are stored as they are."""
    frame = [struct.pack("<IBI", 0xFD2FB528, 2 << 6 | 1 << 5, len(data))]
    blocks = [data[at : at + 100_000] for at in range(0, len(data), 100_000)]
    for number, block in enumerate(blocks):
        frame.append(struct.pack("<I", len(block) << 3 | (number == len(blocks) - 1))[:3] + block)
    return b"".join(frame)


def test_captures_compressed_by_zstd_are_read(examples: Path, tmp_path: Path) -> None:
    capture = examples / "traffic.pcap"
    path = tmp_path / "traffic.pcap.zst"
    path.write_bytes(zstd(capture.read_bytes()))
    expected = rows(pl.scan(capture, "udp", columns=COLUMNS[1:]))
    assert rows(pl.scan(path, "udp", columns=COLUMNS[1:])) == expected and len(expected) > 0
    assert rows(pl.scan(zstd(capture.read_bytes()), "udp", columns=COLUMNS[1:])) == expected


def test_splits_are_plain_data(capture: Path) -> None:
    parts = pl.splits(capture, 5)
    assert len(parts) == 5 and pickle.loads(pickle.dumps(parts)) == parts and parts[0] != parts[1]
    assert [part.end for part in parts[:-1]] == [part.start for part in parts[1:]]
    assert repr(parts[0]).startswith(f"<Split of {capture}: bytes 24 to ")
    with pytest.raises(ValueError, match="at least one part"):
        pl.splits(capture, 0)
    with pytest.raises(ValueError, match="before it starts"):
        pl.Split("x", (b"", 0, 1, 5, 4, True, False))


def damaged(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randrange(1, 8)):
        at = rng.randrange(24, len(changed) - 40)
        changed[at : at + rng.randrange(1, 40)] = rng.randbytes(rng.randrange(1, 40))
    return bytes(changed[: rng.randrange(len(changed) // 2, len(changed))])


def test_splits_of_damaged_captures_equal_one_pass(examples: Path, tmp_path: Path) -> None:
    rng = random.Random(5)
    data, path = long(examples, 4), tmp_path / "damaged.pcap"
    lost = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pl.CaptureWarning)
        for _ in range(40):
            path.write_bytes(damaged(data, rng))
            whole = pl.scan(path, columns=COLUMNS, workers=1)
            expected = rows(whole)
            lost += len(whole.lost)
            parts = pl.splits(path, rng.randrange(1, 9), walk=True)
            found = [pl.scan(part, columns=COLUMNS) for part in parts]
            assert [row for scan in found for row in rows(scan)] == expected
            assert [repr(each) for scan in found for each in scan.lost] == [repr(each) for each in whole.lost]
    assert lost > 20


def late_interfaces(packets: int) -> bytes:
    """A pcapng with a section in the middle that has another interface."""

    def block(kind: int, body: bytes) -> bytes:
        return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)

    section = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)) + block(1, struct.pack("<HHI", 1, 0, 0))
    packet = block(6, struct.pack("<IIIII", 0, 0, 5, 60, 60) + bytes(60))
    return (section + packet * packets) * 2


def test_walked_splits_know_late_descriptions(tmp_path: Path) -> None:
    path = tmp_path / "late.pcapng"
    path.write_bytes(late_interfaces(500))
    expected = rows(pl.scan(path, columns=["offset", "interface"]))
    assert len(expected) == 1000
    parts = pl.splits(path, 6, walk=True)
    assert len(parts) > 4 and [row for part in parts for row in rows(pl.scan(part, columns=["offset", "interface"]))] == expected
    with pytest.raises(pl.CaptureError, match="interfaces are described"):
        for part in pl.splits(path, 6):
            rows(pl.scan(part, columns=["offset"]))
    one, two = load(), pl.scan(parts, program=load, workers=3, merge="sum")
    rows(pl.scan(path, program=one))
    rows(two)
    assert isinstance(two.program, pl.Program) and maps(two.program) == maps(one)


def test_damage_is_told(examples: Path, tmp_path: Path) -> None:
    path = tmp_path / "damaged.pcap"
    path.write_bytes((examples / "traffic.pcap").read_bytes()[:-10])
    with pytest.warns(pl.CaptureWarning, match="is damaged: cut: "):
        scan = pl.scan(path, columns=["offset"])
        assert len(rows(scan)) == 491
    (lost,) = scan.lost
    assert (lost.capture, lost.end) == (str(path), path.stat().st_size) and lost.start < lost.end
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(pl.CaptureWarning):
            rows(pl.scan(path, columns=["offset"]))
    # A hook may look at the scan that warns.
    scan, seen = pl.scan(path, columns=["offset"]), []
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda *_: seen.append(scan.packets)  # type: ignore[assignment]
        assert len(rows(scan)) == 491 and seen == [491]


class Broken:
    """A file whose bytes cannot be read from some offset on."""

    def __init__(self, data: bytes, limit: int) -> None:
        self.data, self.limit, self.at = data, limit, 0

    def seek(self, at: int, whence: int = 0) -> int:
        self.at = at + (len(self.data) if whence == 2 else 0)
        return self.at

    def read(self, size: int) -> bytes:
        if self.at >= self.limit:
            raise TimeoutError("the store does not answer")
        return self.data[self.at : self.at + size]


def test_errors_are_clear(examples: Path, capture: Path, tmp_path: Path) -> None:
    wrong: list[tuple[type[BaseException], str, dict[str, Any]]] = [
        (FileNotFoundError, "no.pcap", {"captures": "no.pcap"}),
        (FileNotFoundError, "no capture matches", {"captures": str(tmp_path / "*.pcap")}),
        (TypeError, "a capture is a path", {"captures": 7}),
        (ValueError, "no captures", {"captures": []}),
        (pl.CaptureError, "firewall.o", {"captures": examples / "firewall.o"}),
        (pl.FilterError, "syntax error", {"captures": capture, "filter": "tcp prot 22"}),
        (ValueError, "no column size", {"captures": capture, "columns": ["size"]}),
        (ValueError, "asked for twice", {"captures": capture, "columns": ["time", "time"]}),
        (ValueError, "of a program's outcome", {"captures": capture, "columns": ["verdict"]}),
        (ValueError, "workers is 1 to 256", {"captures": capture, "workers": 0}),
        (ValueError, "batch_size", {"captures": capture, "batch_size": 0}),
    ]
    for error, text, arguments in wrong:
        with pytest.raises(error, match=text):
            pl.scan(**arguments)
    # A filter for another link than the capture's: cooked packets.
    cooked = bytearray(capture.read_bytes())
    cooked[20:24] = (113).to_bytes(4, "little")
    with pytest.raises(pl.FilterError, match="the filter is for Ethernet"):
        pl.scan(cooked, pl.filter("tcp"))
    # The exception of an object of Python is raised as it is, after the packets before it.
    scan = pl.scan(Broken(capture.read_bytes(), 4 << 20), columns=["offset"], workers=1)
    found = 0
    with pytest.raises(TimeoutError, match="does not answer"):
        for batch in scan:
            found += len(batch)
    assert found > 1000
    assert list(scan) == []
    # A part whose end is none.
    first = pl.splits(capture, 2)[0]
    name, split = first.__reduce__()[1]
    assert split is not None
    with pytest.raises(pl.CaptureError, match="is no boundary"):
        rows(pl.scan(pl.Split(name, (*split[:4], split[4] - 1, False, False)), columns=["offset"]))


def test_scans_end_early_and_stay_in_their_process(capture: Path) -> None:
    for _ in range(20):
        next(pl.scan(capture, columns=["data"], batch_size=1, workers=2))
    scan = pl.scan(capture, columns=["data"])
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        for use in (lambda: next(scan), lambda: scan.packets):
            try:
                use()
            except RuntimeError as error:
                os.write(writer, str(error).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 200).count(b"in the process that began it") == 2
    assert sum(map(len, scan)) == 200 * 492



EXIT = """
import sys, threading, time
import paceline as pl

class Slow:
    '''A file of which each read takes a while.'''
    def __init__(self, data, reads):
        self.data, self.at, self.reads = data, 0, reads
    def seek(self, offset, whence=0):
        self.at = len(self.data) if whence == 2 else offset
        return self.at
    def read(self, size):
        self.reads -= 1
        time.sleep(0.02 if self.reads < 0 else 0)
        return self.data[self.at:self.at + min(size, 4096)]

data = open("traffic.pcap", "rb").read()
scan = pl.scan([Slow(data, 3) for _ in range(20)], workers=4, batch_size=10)
next(scan)
"""


@pytest.mark.parametrize(
    "how",
    [
        "",
        "time.sleep(0.1)",
        "sys.exit(3)",
        "threading.Thread(target=lambda: list(scan), daemon=True).start(); time.sleep(0.05)",
        "import atexit; atexit.register(lambda: list(scan))",
    ],
)
def test_the_interpreter_ends_while_a_scan_reads_a_file_object(examples: Path, how: str) -> None:
    ended = subprocess.run([sys.executable, "-c", EXIT + how], cwd=examples, capture_output=True, text=True, timeout=60)
    assert ended.returncode == (3 if "exit(3)" in how else 0), ended
    # A daemon thread that waits for the scan gets an exception, which it may have the time to print.
    assert ended.stderr == "" or "daemon" in how and ended.stderr.startswith("Exception in thread"), ended


def test_more_captures_than_files_can_be_open(examples: Path, tmp_path: Path) -> None:
    capture = (examples / "traffic.pcap").read_bytes()
    for number in range(500):
        (tmp_path / f"{number:03}.pcap").write_bytes(capture)
    script = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (48, 48))
import paceline as pl
for workers in (1, 4):
    scan = pl.scan(sys.argv[1], workers=workers)
    print(sum(len(batch) for batch in scan), scan.packets, len(scan.lost))
"""
    ended = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "*.pcap")], capture_output=True, text=True, timeout=60
    )
    assert (ended.stdout, ended.stderr) == (f"{500 * 492} {500 * 492} 0\n" * 2, "")
