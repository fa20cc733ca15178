"""The pytest plugin and the strategies."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import paceline as pl
from paceline import strategies

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def test_fixtures_load_objects_maps_and_captures(pytester: pytest.Pytester) -> None:
    pytester.makeini(f"[pytest]\npaceline_objects = {EXAMPLES}\n")
    pytester.makepyfile(
        """
        import paceline as pl
        import pytest

        pytestmark = pytest.mark.paceline("firewall.o", maps={"rules": [({"port": 80, "protocol": 6}, {"action": 1})]})

        @pytest.mark.parametrize("port, verdict", [(80, pl.DROP), (81, pl.PASS)])
        def test_rules(program, port, verdict):
            assert program.run(pl.packet(f"eth / ipv4 src=10.0.0.9 / tcp dport={port}")).verdict == verdict

        def test_maps(maps):
            assert len(maps["rules"]) == 1

        def test_objects(load_object):
            assert load_object("counter.o").name == "counter"

        def test_captures(capture, program):
            assert sum(program.run(packet).verdict == pl.DROP for packet in capture("traffic.pcap")) > 50
        """
    )
    result = pytester.runpytest_subprocess("--strict-markers")
    result.assert_outcomes(passed=5)


def test_packets_that_differ_are_shown_by_fields(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import paceline as pl

        def test_it():
            packet = pl.packet("eth / ipv4 src=10.0.0.1 / tcp dport=23")
            assert bytes(packet) == pl.packet("eth / ipv4 src=10.0.0.1 / tcp dport=22")

        def test_scapy():
            from scapy.all import Ether, IP, TCP
            assert pl.packet("eth / ipv4 src=10.0.0.1 ttl=3 / tcp dport=23") == bytes(Ether()/IP()/TCP())

        def test_others():
            assert b"a" == b"b"
        """
    )
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines(["*packets differ*", "*left:*tcp dport=23*", "*right:*tcp dport=22*", "*tcp.dport: 23 != 22*"])
    result.stdout.fnmatch_lines(["*ipv4.ttl: 3 != 64*"])
    result.stdout.fnmatch_lines(["*At index 0 diff*"])


def test_a_verdict_that_is_not_expected_is_explained(pytester: pytest.Pytester, examples: Path) -> None:
    pytester.makepyfile(
        f"""
        import paceline as pl

        TELNET = pl.packet("eth / ipv4 / tcp dport=23")

        def test_it():
            fw = pl.load({str(examples / "firewall.o")!r})
            assert fw.run(TELNET).verdict == pl.PASS

        def test_another_packet_ran_since():
            fw = pl.load({str(examples / "firewall.o")!r})
            run = fw.run(TELNET)
            fw.run(pl.packet("eth / ipv4 / tcp dport=80"))
            assert run.verdict is not pl.DROP

        def test_maps_are_others():
            fw = pl.load({str(examples / "firewall.o")!r})
            packet = pl.packet("eth / ipv4 / tcp dport=80")
            fw.maps["rules"][{{"port": 80, "protocol": 6}}] = {{"action": 1}}
            run = fw.run(packet)
            del fw.maps["rules"][{{"port": 80, "protocol": 6}}]
            assert run.verdict == pl.PASS
        """
    )
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(failed=3)
    why = "*the packet was dropped at firewall.bpf.c:189 because *tcp.dport is 23*"
    result.stdout.fnmatch_lines(["*DROP: 1> == *PASS: 2>*", why, "*DROP: 1> is not *DROP: 1>*", why])
    result.stdout.fnmatch_lines(["*not explained: *the program would do something else with the packet now*"])


@pytest.mark.parametrize("options", [[], ["-n", "2"]], ids=["alone", "xdist"])
def test_coverage_of_all_tests_is_one_file(pytester: pytest.Pytester, options: list[str]) -> None:
    pytester.makepyfile(
        f"""
        import paceline as pl

        kept = pl.load({str(EXAMPLES / "counter.o")!r})

        def test_one():
            pl.load({str(EXAMPLES / "firewall.o")!r}).run(pl.packet("eth / ipv4 src=10.0.0.9 / tcp dport=23"))

        def test_two():
            pl.load({str(EXAMPLES / "firewall.o")!r}).run(pl.packet("eth / arp"))
            kept.run(pl.packet("eth / arp"))
        """
    )
    result = pytester.runpytest_subprocess("--paceline-coverage", "out.info", *options)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*BPF coverage*", "lines: *", "written to out.info"])
    text = (pytester.path / "out.info").read_text()
    assert "firewall.bpf.c" in text and "counter.bpf.c" in text
    hits = dict(line[3:].split(",") for line in text.split("firewall.bpf.c")[1].split("end_of_record")[0].splitlines() if line.startswith("DA:"))
    assert hits["189"] != "0" and max(map(int, hits.values())) >= 2


def test_reports_are_merged_by_lines_functions_and_branches() -> None:
    from paceline import _lcov

    counter = pl.load(EXAMPLES / "counter.o", coverage=True)
    counter.run(pl.packet("eth / arp"))
    once = counter.coverage()
    assert _lcov.merge([once.lcov()]) == once.lcov() and _lcov.totals(once.lcov()) == once.totals
    counter.run(pl.packet("eth / ipv4 / udp"))
    both = once + counter.coverage()
    assert _lcov.merge([once.lcov(), counter.coverage().lcov()]) == both.lcov()


def test_a_program_needs_its_marker(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(program): pass")
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*needs @pytest.mark.paceline*"])


fw = pl.load(EXAMPLES / "firewall.o")


@given(strategies.packets())
@settings(deadline=None)
def test_drawn_packets_are_well_formed(packet: pl.Packet) -> None:
    assert pl.packet(packet.layers) == packet
    assert fw.run(packet).verdict in (pl.PASS, pl.DROP)


@given(strategies.packets(["eth", "ipv4", "tcp"], tcp__dport=st.integers(1, 1023), ipv4__ttl=9))
@settings(deadline=None)
def test_fields_are_drawn_from_what_is_given(packet: pl.Packet) -> None:
    assert 1 <= packet["tcp.dport"] <= 1023 and packet["ipv4.ttl"] == 9


@given(strategies.damaged_packets())
@settings(deadline=None)
def test_damaged_packets_are_packets(packet: pl.Packet) -> None:
    assert fw.run(packet).verdict in list(pl.Verdict)
    assert isinstance(packet.layers, str)


@given(st.data())
@settings(deadline=None, max_examples=30)
def test_contents_fit_their_maps(data: st.DataObject) -> None:
    for name in ("rules", "blocked_v4", "counters"):
        elements = data.draw(strategies.contents(fw.maps[name]))
        fw.maps[name].update(elements)
        assert all(key in fw.maps[name] for key in elements)
        fw.maps[name].clear()


state = pl.Object(EXAMPLES / "../crates/cli/tests/fixtures/state.o").load()


@given(st.data())
@settings(deadline=None, max_examples=30)
def test_prefixes_are_drawn_for_tries(data: st.DataObject) -> None:
    prefixes = state.maps["prefixes"]
    key = data.draw(strategies.keys(prefixes))
    assert int.from_bytes(key[:4], sys.byteorder) <= 8 * (len(key) - 4)
    elements = data.draw(strategies.contents(prefixes))
    prefixes.update(elements)
    assert all(key in prefixes for key in elements) and len(prefixes) <= len(elements)
    prefixes.clear()
