"""Chains, filters, networks and events."""

from __future__ import annotations

from pathlib import Path

import pytest

import paceline as pl

TCP = "eth / ipv4 src=10.0.0.9 / tcp dport={}"


def test_a_chain_runs_program_after_program(examples: Path) -> None:
    fw, counter = pl.load(examples / "firewall.o"), pl.load(examples / "counter.o")
    chain = pl.chain([counter, fw])
    assert chain.names == ["counter", "firewall"]
    assert chain.run(pl.packet(TCP.format(23))).verdict == pl.DROP
    assert chain.run(pl.packet(TCP.format(80))).verdict == pl.PASS
    assert "firewall.bpf.c:189" in str(chain.run(pl.packet(TCP.format(23))).why())
    assert len(chain.run(pl.packet(TCP.format(23))).why().data) == 2


def test_a_chain_changes(examples: Path) -> None:
    fw = pl.load(examples / "firewall.o")
    chain = pl.chain([("first", pl.load(examples / "counter.o"))])
    telnet = pl.packet(TCP.format(23))
    assert chain.run(telnet).verdict == pl.PASS
    chain.add(fw)
    assert chain.names == ["first", "firewall"] and chain.run(telnet).verdict == pl.DROP
    chain.add(("zero", pl.load(examples / "counter.o")), before="first")
    assert chain.names == ["zero", "first", "firewall"]
    chain.replace("firewall", pl.load(examples / "counter.o"))
    assert chain.run(telnet).verdict == pl.PASS
    revision = chain.revision
    with pytest.raises(pl.ChainError, match="nothing"):
        chain.remove("nothing")
    assert chain.revision == revision
    chain.remove("zero")
    assert chain.names == ["first", "firewall"]
    with pytest.raises(pl.ChainError):
        pl.chain([])
    with pytest.raises(TypeError, match="a chain is of programs"):
        pl.chain(["firewall.o"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="order is"):
        pl.chain([fw], order="random")  # type: ignore[arg-type]


def test_a_chain_runs_on_the_cpus_that_all_its_programs_have(examples: Path) -> None:
    one, three = pl.load(examples / "firewall.o"), pl.load(examples / "firewall.o", cpus=3)
    with pytest.raises(ValueError, match="cpus is 1 to 1"):
        pl.chain([one, three], cpus=2)
    chain = pl.chain([three])
    with pytest.raises(pl.ChainError, match="runs on 3 CPUs, the program was loaded for 1"):
        chain.add(one)
    assert chain.names == ["firewall"] and chain.run(pl.packet(TCP.format(23))).verdict == pl.DROP


def test_equal_names_get_numbers(examples: Path) -> None:
    first, second, third = (pl.load(examples / "counter.o") for _ in range(3))
    chain = pl.chain([first, second])
    assert chain.names == ["counter", "counter#2"]
    chain.add(third)
    assert chain.names == ["counter", "counter#2", "counter#3"]
    with pytest.raises(pl.ChainError, match="in the chain already"):
        chain.add(first)


def test_filters(examples: Path) -> None:
    ssh = pl.filter("tcp port 22")
    assert ssh(pl.packet(TCP.format(22))) and not ssh(pl.packet(TCP.format(23)))
    assert ssh.matches(bytes(pl.packet(TCP.format(22)))) and ssh.expression == "tcp port 22"
    counts = pl.replay(examples / "traffic.pcap", ssh)
    packets = sum(len(batch) for batch in counts)
    assert packets == 492 == sum(counts.verdicts.values()) and 0 < counts.verdicts["pass"] < 492
    chain = pl.chain([("ssh", ssh), pl.load(examples / "firewall.o")])
    assert chain.run(pl.packet(TCP.format(80))).verdict == pl.DROP
    assert chain.run(pl.packet(TCP.format(22))).verdict == pl.PASS
    with pytest.raises(pl.FilterError, match="syntax error|expression"):
        pl.filter("tcp port port")
    with pytest.raises((pl.FilterError, ValueError)):
        pl.filter("tcp\0port")
    ip = pl.classic_filter("ldh [12]\njne #0x800, drop\nret #-1\ndrop: ret #0")
    assert ip(pl.packet(TCP.format(1))) and not ip(pl.packet("eth / arp"))
    with pytest.raises(pl.FilterError):
        pl.classic_filter("nonsense")


def test_objects_of_classic_filters() -> None:
    made = pl.Object.from_classic("ip", "ldh [12]\njne #0x800, drop\nret #-1\ndrop: ret #0").load().program()
    assert made.run(pl.packet(TCP.format(1))).verdict == pl.PASS
    assert made.run(pl.packet("eth / arp")).verdict == pl.DROP


def test_networks(tmp_path: Path) -> None:
    text = '[{"ifindex":7,"ifname":"eth7","flags":["UP"],"mtu":1500,"link_type":"ether","address":"02:00:00:00:00:07"}]'
    network = pl.Network(text)
    assert (7, "eth7") in network.interfaces
    (tmp_path / "net.json").write_text(text)
    assert pl.Network.read(tmp_path / "net.json").interfaces == network.interfaces
    with pytest.raises(pl.NetworkError):
        pl.Network("hello {")


FIXTURES = Path(__file__).resolve().parents[3] / "crates/cli/tests/fixtures"


def test_events_come_with_the_run() -> None:
    tell = pl.Object(FIXTURES / "events.o").load().program("tell")
    packet = pl.packet("eth / ipv4 / udp dport=9")
    run = tell.run(packet)
    (event,) = run.events
    assert (event.map, event.cpu, event.packet) == ("perf", 0, 1) and packet.startswith(event.captured)
    ring = tell.maps["ring"]
    assert isinstance(ring, pl.RingBuffer)
    (record,) = ring
    assert record == event.data and ring.read() == []
    batch = tell.run_many([packet] * 70)
    assert [event.packet for event in batch.events] == list(range(2, 72)) and len(ring.read()) == 70


def test_lines_of_the_trace_come_with_the_run(examples: Path) -> None:
    sampler = pl.load(examples / "sampler.o", "sample_every", variables={"one_in": 1, "report_every": 2})
    runs = [sampler.run(pl.packet(TCP.format(80))) for _ in range(4)]
    assert [len(run.trace) for run in runs] == [0, 1, 0, 1] and "2 samples of 2 packets" in runs[1].trace[0]
    assert len(sampler.run_many([bytes(pl.packet("eth / arp"))] * 10).trace) == 5
