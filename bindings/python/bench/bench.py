"""Speeds of the package, beside what they are compared with.

    cargo build --release --example library && python bench/bench.py target/release/examples/library

From bindings/python, with the package, pyarrow and Scapy installed. Each figure is the least of some rounds.
"""

from __future__ import annotations

import argparse
import struct
import subprocess
import sys
import tempfile
import time
import timeit
from pathlib import Path

import pyarrow as pa

import paceline as pl
from paceline import _paceline

ROOT = Path(__file__).resolve().parents[3]
FIREWALL, COUNTER = ROOT / "examples/firewall.o", ROOT / "examples/counter.o"
PACKETS = 1_000_000

UNIT_TEST = """
import time
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
begin = time.perf_counter()
import paceline as pl
imported = time.perf_counter()
fw = pl.load({path!r}, program="firewall")
loaded = time.perf_counter()
run = fw.run({ether} / IP(src="10.0.0.9", dst="10.0.0.1") / TCP(dport=23))
assert run.verdict == pl.DROP
end = time.perf_counter()
print(end - begin, imported - begin, loaded - imported, end - loaded)
"""


def least(call: str, rounds: int = 9, **names: object) -> float:
    """Nanoseconds of a call."""
    timer = timeit.Timer(call, globals=names)
    number, _ = timer.autorange()
    return min(timer.repeat(rounds, number)) / number * 1e9


def row(name: str, value: str, beside: str, bar: str) -> None:
    print(f"| {name} | {value} | {beside} | {bar} |")


def single(path: Path) -> None:
    program, packet = pl.load(path), bytes(pl.packet("eth / ipv4 src=10.0.0.9 / tcp dport=80"))
    smallest = least("nothing(packet)", nothing=_paceline.nothing, packet=packet)
    run = least("run(packet)", run=program.run, packet=packet)
    name = f"`run` of one packet, {path.stem}"
    row(name, f"{run:.0f} ns", f"smallest PyO3 call {smallest:.0f} ns", f"{run - smallest:.0f} ns more; bar 1000, reach 300")


def many(command: list[str]) -> None:
    packet = bytes(pl.packet("eth / ipv4 src=10.0.0.9 / tcp dport=80")).ljust(64, b"\0")
    program = pl.load(FIREWALL)
    column = pa.array([packet] * PACKETS)
    ours, library = [], []
    # In turns, so that both meet the same noise.
    for _ in range(5):
        for _ in range(9):
            begin = time.perf_counter()
            program.run_many(column)
            ours.append((time.perf_counter() - begin) / PACKETS * 1e9)
        library.append(float(subprocess.run(command, check=True, capture_output=True).stdout))
    row(
        "`run_many` of a million packets of 64 bytes from an Arrow column, firewall",
        f"{min(ours):.1f} ns a packet",
        f"Rust library {min(library):.1f} ns",
        f"{min(ours) / min(library):.2f} times; bar 1.3, reach 1.05",
    )


def unit_test(name: str, ether: str) -> None:
    code = UNIT_TEST.format(path=str(FIREWALL), ether=ether)
    runs = [subprocess.run([sys.executable, "-c", code], check=True, capture_output=True) for _ in range(9)]
    whole, imported, loaded, run = min([float(x) * 1e3 for x in done.stdout.split()] for done in runs)
    row(
        name,
        f"{whole:.1f} ms",
        f"import {imported:.1f}, load and verify {loaded:.1f}, run {run:.1f} ms",
        "bar 30 ms, reach 10",
    )


def long_capture(path: Path, times: int) -> None:
    """The example capture so many times, each a second later."""
    capture = (ROOT / "examples/traffic.pcap").read_bytes()
    records, starts, at = bytearray(capture[24:]), [], 0
    while at < len(records):
        starts.append(at)
        at += 16 + struct.unpack_from("<I", records, at + 8)[0]
    with path.open("wb") as file:
        file.write(capture[:24])
        for _ in range(times):
            for start in starts:
                struct.pack_into("<I", records, start, struct.unpack_from("<I", records, start)[0] + 1)
            file.write(records)


def archives() -> None:
    expression = "tcp port 22 and greater 1000"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "long.pcap"
        long_capture(path, 6000)

        def scan(workers: int) -> None:
            for _ in pl.scan(path, expression, columns=["offset"], workers=workers):
                pass

        def tcpdump() -> None:
            subprocess.run(["tcpdump", "-r", path, "-w", "/dev/null", expression], check=True, capture_output=True)

        works = {"one": lambda: scan(1), "two": lambda: scan(2), "tcpdump": tcpdump}
        times: dict[str, list[float]] = {name: [] for name in works}
        # In turns, so that all meet the same noise.
        for _ in range(11):
            for name, work in works.items():
                begin = time.perf_counter()
                work()
                times[name].append(time.perf_counter() - begin)
        one, two, theirs = (min(times[name]) for name in works)
        what = f"`scan` of {path.stat().st_size / 1e6:.0f} MB that are cached, {expression!r}"
        row(f"{what}, one worker", f"{one * 1e3:.0f} ms", f"tcpdump -r {theirs * 1e3:.0f} ms", f"{theirs / one:.1f} times as fast; bar 2, reach 4")
        row("the same, two workers", f"{two * 1e3:.0f} ms", f"one worker {one * 1e3:.0f} ms", f"{one / two:.2f} times as fast; bar 1.8, reach 1.95")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", help="the example `library`, built: target/release/examples/library")
    library = parser.parse_args().library
    print("| what | measured | beside | |\n|---|---|---|---|")
    single(COUNTER)
    single(FIREWALL)
    many([library, str(FIREWALL)])
    # Without a destination, Scapy looks for one: it sends an ARP request for the address and waits for an answer.
    unit_test("unit test with a Scapy packet, after Scapy's import", "Ether()")
    unit_test("the same, with the packet's destination: `Ether(dst=...)`", 'Ether(dst="02:00:00:00:00:01")')
    archives()


if __name__ == "__main__":
    main()
