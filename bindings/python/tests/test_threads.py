"""Threads, forks and garbage collection. PACELINE_PYTHON_SECONDS makes the load last longer."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import paceline as pl

SECONDS = float(os.environ.get("PACELINE_PYTHON_SECONDS", "1"))
TCP = "eth / ipv4 src=10.0.0.9 / tcp dport={}"


def together(*works: Callable[[], object]) -> None:
    """Runs works again and again, a thread for each, for some time. The first exception ends all and is raised."""
    end, failed = time.monotonic() + SECONDS, []

    def repeat(work: Callable[[], object]) -> None:
        while time.monotonic() < end and not failed:
            try:
                work()
            except BaseException as error:  # noqa: BLE001, every one ends the test
                failed.append(error)

    threads = [threading.Thread(target=repeat, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=SECONDS + 60)
        assert not thread.is_alive(), "a thread hangs"
    if failed:
        raise failed[0]


def test_objects_are_used_by_many_threads(examples: Path) -> None:
    fw = pl.load(examples / "firewall.o", cpus=2)
    chain = pl.chain([("fw", fw), ("counter", pl.load(examples / "counter.o", cpus=2))], cpus=2)
    drop, ok = pl.packet(TCP.format(23)), pl.packet(TCP.format(80))
    many = [bytes(drop), bytes(ok)] * 500
    rules = fw.maps["rules"]

    def run() -> None:
        assert fw.run(drop).verdict == pl.DROP and fw.run(ok).verdict == pl.PASS

    def run_many() -> None:
        assert fw.run_many(many).column("verdict").to_list() == ["drop", "pass"] * 500

    def write() -> None:
        rules.update([({"port": port, "protocol": 17}, {"action": 1}) for port in range(100)])
        assert len(list(rules.items())) <= 100
        rules.clear()

    def replay() -> None:
        assert sum(len(batch) for batch in pl.replay(examples / "traffic.pcap", fw)) == 492

    def explain() -> None:
        assert fw.run(drop).why().line == 189

    def change() -> None:
        chain.add(("extra", pl.load(examples / "counter.o", cpus=2)))
        assert chain.run(drop).verdict == pl.DROP
        chain.remove("extra")

    def load() -> None:
        assert pl.load(examples / "firewall.o").run(ok).verdict == pl.PASS
        gc.collect()

    together(run, run, run_many, write, replay, explain, change, load)


def test_runs_of_one_cpu_are_one_after_the_other(examples: Path) -> None:
    """The firewall counts without atomic operations: two runs at a time on one CPU would lose packets."""
    fw = pl.load(examples / "firewall.o")
    packets = [bytes(pl.packet("eth / arp"))] * 1000
    rounds = [0, 0, 0]

    def work(thread: int) -> Callable[[], None]:
        def run() -> None:
            fw.run_many(packets)
            rounds[thread] += 1

        return run

    together(*(work(thread) for thread in range(3)))
    counted = sum(counter.packets for (counter,) in fw.maps["counters"].values())
    assert counted == 1000 * sum(rounds)


def test_other_threads_run_meanwhile(examples: Path) -> None:
    fw = pl.load(examples / "firewall.o")
    packets = [bytes(pl.packet(TCP.format(80)))] * 200_000
    ticks: list[float] = []
    done = threading.Event()

    def tick() -> None:
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0)

    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.perf_counter()
    fw.run_many(packets)
    end = time.perf_counter()
    done.set()
    thread.join()
    assert sum(begin < tick < end for tick in ticks) > 10


@pytest.mark.filterwarnings("ignore:This process")
def test_children_of_a_fork_run_on(examples: Path) -> None:
    fw = pl.load(examples / "firewall.o")
    drop = pl.packet(TCP.format(23))
    stop = threading.Event()

    def busy() -> None:
        while not stop.is_set():
            fw.run_many([bytes(drop)] * 2000)

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        for _ in range(20):
            ok = False
            child = os.fork()
            if child == 0:
                try:
                    # The thread that had the worker of the only CPU is not here.
                    loaded = pl.load(examples / "firewall.o")
                    ok = fw.run(drop).verdict == loaded.run(drop).verdict == pl.DROP
                    # No native code can be made in a fork.
                    ok = ok and loaded.engine == "threaded"
                finally:
                    os._exit(0 if ok else 1)
            end = time.monotonic() + 20
            while (status := os.waitpid(child, os.WNOHANG)) == (0, 0):
                if time.monotonic() > end:
                    os.kill(child, 9)
                    os.waitpid(child, 0)
                    pytest.fail("the child hangs")
                time.sleep(0.001)
            assert status[1] == 0
    finally:
        stop.set()
        thread.join()


SUBINTERPRETER = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
import paceline as pl

for _ in range(3):
    other = interpreters.create()
    code = "import sys; sys.path[:] = " + repr(sys.path) + '''
try:
    import paceline
except ImportError as error:
    print(error, flush=True)
'''
    (interpreters.exec if hasattr(interpreters, "exec") else interpreters.run_string)(other, code)
    interpreters.destroy(other)
assert pl.load(sys.argv[1]).run(pl.packet("eth / arp")).verdict == pl.PASS
"""


def test_subinterpreters_are_refused(examples: Path) -> None:
    """Classes of PyO3 belong to one interpreter."""
    ran = subprocess.run(
        [sys.executable, "-c", SUBINTERPRETER, str(examples / "firewall.o")], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    # Newer versions of Python refuse before the module can.
    refusals = ran.stdout.splitlines()
    assert len(refusals) == 3 and all("subinterpreters" in refusal for refusal in refusals), ran.stdout


def test_memory_comes_back(examples: Path) -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def work() -> None:
        fw = pl.load(examples / "firewall.o")
        run = fw.run(pl.packet(TCP.format(23)))
        run.why()
        fw.run_many([bytes(run.data)] * 100, columns=["data"])
        pl.chain([fw]).run(run.data)
        del fw, run

    for _ in range(20):
        work()
    gc.collect()
    before = resident()
    for _ in range(100):
        work()
    gc.collect()
    assert resident() - before < 40 << 20


def test_results_outlive_their_program(examples: Path) -> None:
    run = pl.load(examples / "firewall.o").run(pl.packet(TCP.format(23)))
    maps = pl.load(examples / "firewall.o").maps
    gc.collect()
    assert run.why().line == 189 and run.verdict == pl.DROP
    maps["rules"][{"port": 1}] = {"action": 1}
    assert len(maps["rules"]) == 1


def test_packets_may_be_made_by_running_packets(examples: Path) -> None:
    fw = pl.load(examples / "firewall.o")
    drop = pl.packet(TCP.format(23))

    class Packet:
        def __bytes__(self) -> bytes:
            return fw.run(drop).data

    given = (bytes(fw.run(drop).data) for _ in range(10))
    assert fw.run_many(given).column("verdict").to_list() == ["drop"] * 10
    assert fw.run(Packet()).verdict == pl.DROP
    assert fw.run_many([Packet()] * 3).column("verdict").to_list() == ["drop"] * 3
    for batch in pl.replay(examples / "traffic.pcap", fw, columns=["data"]):
        assert fw.run_many(batch.column("data").to_list()[:5]).column("verdict").to_list()
