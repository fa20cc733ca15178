"""Objects, programs, verdicts and explanations."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import paceline as pl

FIXTURES = Path(__file__).resolve().parents[3] / "crates/cli/tests/fixtures"
TCP = "eth / ipv4 src=10.0.0.9 dst=10.0.0.1 / tcp dport={}"


def test_the_example_of_the_readme(examples: Path) -> None:
    fw = pl.load(examples / "firewall.o", program="firewall")
    packet = pl.packet(TCP.format(80))
    assert fw.run(packet).verdict == pl.PASS
    fw.maps["rules"][{"port": 80, "protocol": 6}] = {"action": 1}
    run = fw.run(packet)
    assert run.verdict is pl.DROP
    assert run.data == packet
    why = run.why()
    assert why.verdict == pl.DROP
    assert "rules[" in str(why) and "firewall.bpf.c" in (why.file or "")
    source = (examples / "firewall.bpf.c").read_text().splitlines()
    assert why.line is not None and source[why.line - 1].strip() == why.source


@pytest.mark.parametrize("engine", pl.engines())
def test_every_engine_gives_the_same(examples: Path, engine: str) -> None:
    fw = pl.load(examples / "firewall.o", "firewall", engine=engine)
    assert fw.engine == engine
    verdicts = [fw.run(pl.packet(TCP.format(port))).verdict for port in (22, 23, 80, 445)]
    assert verdicts == [pl.PASS, pl.DROP, pl.PASS, pl.DROP]


def test_objects_come_from_paths_and_bytes(examples: Path) -> None:
    path = examples / "firewall.o"
    for source in (path, str(path), path.read_bytes(), bytearray(path.read_bytes()), memoryview(path.read_bytes())):
        obj = pl.Object(source)
        assert obj.programs == ["firewall"] and "rules" in obj.maps
    assert pl.Object(path).file == str(path) and pl.Object(path.read_bytes()).file is None


def test_a_file_that_is_not_there_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as error:
        pl.load(tmp_path / "no.o")
    assert error.value.filename == str(tmp_path / "no.o")
    with pytest.raises(IsADirectoryError):
        pl.load(tmp_path)


def test_what_is_no_object_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "text.o"
    path.write_text("hello")
    with pytest.raises(pl.ObjectError) as error:
        pl.load(path)
    assert error.value.file == str(path)
    assert str(error.value) == f"{path}: {error.value.cause}"


def test_a_refusal_has_text_and_data() -> None:
    path = FIXTURES / "wrong_pointer.o"
    with pytest.raises(pl.VerifierError) as raised:
        pl.load(path)
    error = raised.value
    assert "wrong_pointer.bpf.c:17:10" in error.text and "^^^^" in error.text and error.text == str(error)
    assert error.line == 17 and error.program == "wrong_pointer" and error.file == str(path)
    assert error.place == "./wrong_pointer.bpf.c:17" or error.place.endswith("wrong_pointer.bpf.c:17")
    assert error.data["cause"]["kind"] == "out_of_bounds" and error.data["slot"] == 6
    assert error.hint and "data_end" in error.hint
    assert isinstance(error, pl.ProgramError) and isinstance(error, pl.PacelineError)
    with pytest.raises(pl.VerifierError):
        pl.Object(path).verify()
    assert pl.load(path, verify=False).engine == "plain"


def test_errors_survive_pickling() -> None:
    with pytest.raises(pl.VerifierError) as raised:
        pl.load(FIXTURES / "wrong_pointer.o")
    copy = pickle.loads(pickle.dumps(raised.value))
    assert (copy.text, copy.data, copy.file) == (raised.value.text, raised.value.data, raised.value.file)


def test_names_that_are_not_there(examples: Path) -> None:
    with pytest.raises(pl.ProgramError, match=r"no program nothing \(available: firewall\)"):
        pl.load(examples / "firewall.o", "nothing")
    with pytest.raises(KeyError, match=r"no map rule \(available: .*rules"):
        pl.load(examples / "firewall.o").maps["rule"]
    with pytest.raises(ValueError, match="engine"):
        pl.load(examples / "firewall.o", engine="fast")


def test_variables_before_and_after(examples: Path) -> None:
    fragment = pl.packet("eth / ipv4 frag=100 / 0x00*32")
    assert pl.load(examples / "firewall.o").run(fragment).verdict == pl.DROP
    fw = pl.load(examples / "firewall.o", variables={"drop_fragments": False})
    assert fw.run(fragment).verdict == pl.PASS
    assert fw.variables["drop_fragments"] is False and fw.variables["max_echo_bytes"] == 1024
    with pytest.raises(pl.MapError, match="constant") as error:
        fw.variables["drop_fragments"] = True
    assert error.value.errno == 1
    with pytest.raises(KeyError, match="no variable"):
        fw.variables["nothing"]
    with pytest.raises(KeyError, match="no variable"):
        pl.load(examples / "firewall.o", variables={"nothing": 1})
    with pytest.raises(pl.MapValueError, match="drop_fragments"):
        pl.load(examples / "firewall.o", variables={"drop_fragments": 7})

    vlan = pl.load(examples / "vlan.o", "vlan_pop")
    assert vlan.variables["untouched"] == 0
    vlan.run(pl.packet("eth / arp"))
    assert vlan.variables["untouched"] == 1
    vlan.variables["untouched"] = 41
    vlan.run(pl.packet("eth / arp"))
    assert dict(vlan.variables)["untouched"] == 42


def test_the_explanation_has_the_whole_way(examples: Path) -> None:
    fw = pl.load(examples / "firewall.o")
    why = fw.run(pl.packet(TCP.format(23))).why()
    assert why.sentence.startswith("dropped at firewall.bpf.c:189 because denied[1].port is 23 and tcp.dport is 23 and ")
    assert ("packet", "tcp.dport", "23") in [(fact.kind, fact.name, fact.value) for fact in why.facts]
    assert why.program == "firewall"
    (program,) = why.data
    assert program["returned"] == 1 and program["decision"]["at"]["line"] == why.line
    assert any("branch" in event for event in program["events"])


def test_an_explanation_of_another_state_is_refused(examples: Path) -> None:
    fw = pl.load(examples / "firewall.o")
    run = fw.run(pl.packet(TCP.format(80)))
    fw.maps["rules"][{"port": 80, "protocol": 6}] = {"action": 1}
    with pytest.raises(pl.ProgramError, match="explain=True"):
        run.why()
    recorded = fw.run(pl.packet(TCP.format(80)), explain=True)
    fw.maps["rules"].clear()
    assert recorded.verdict == recorded.why().verdict == pl.DROP


def test_why_has_local_variables_where_asked_for(examples: Path) -> None:
    path = examples.parent / "crates/object/tests/fixtures/variables.clang19.o"
    # 25 * 3 + 2, and 25 * 3 + 5, which divided by 3 leaves 2: a member of an enumeration.
    packets = [pl.packet(f"eth type=0x1234 / 0x19{last:02x}000000000000") for last in (2, 5)]
    for named in (False, True):
        program = pl.load(path, locals=named)
        told = [str(program.run(packet, explain=True).why().data) for packet in packets]
        assert ("'sum', 'value': '77'" in told[0]) == named, told[0]
        assert ("'step', 'value': 'THIRD'" in told[1]) == named, told[1]


def test_why_leaves_maps_as_they_are(examples: Path) -> None:
    fw = pl.load(examples / "firewall.o")
    run = fw.run(pl.packet(TCP.format(23)))
    before = list(fw.maps["counters"].items())
    assert run.why().line == 189
    assert list(fw.maps["counters"].items()) == before


def test_redirects_name_interface_or_map(examples: Path) -> None:
    steering = pl.load(examples / "steering.o")
    runs = [steering.run(pl.packet(TCP.format(port))) for port in (22, 80, 443)]
    assert all((run.redirect is not None) == (run.verdict == pl.REDIRECT) for run in runs)


def test_packets_of_any_kind(examples: Path) -> None:
    fw = pl.load(examples / "firewall.o")
    packet = bytes(pl.packet(TCP.format(23)))
    for given in (packet, bytearray(packet), memoryview(packet), memoryview(packet * 2)[: len(packet)]):
        assert fw.run(given).verdict == pl.DROP
    with pytest.raises(TypeError, match="pl.packet"):
        fw.run("eth / arp")  # type: ignore[arg-type]
    for wrong in (None, 7, [1, 2], object(), 1.5):
        with pytest.raises(TypeError, match="a packet is bytes"):
            fw.run(wrong)  # type: ignore[arg-type]
    with pytest.raises(pl.PacketError, match="longer than a frame"):
        fw.run(bytes(1 << 20))
    assert fw.run(b"").verdict in list(pl.Verdict)


def test_settings_are_what_programs_see(examples: Path) -> None:
    sampler = pl.load(examples / "sampler.o", "sample_random")
    packet = pl.packet(TCP.format(80))
    first = [sampler.run(packet, seed=7).verdict for _ in range(5)]
    assert len(set(first)) == 1
    with pytest.raises(ValueError, match="needs a network"):
        sampler.run(packet, ingress="eth0")
    with pytest.raises((ValueError, OverflowError)):
        sampler.run(packet, queue=1 << 20)
    with pytest.raises(pl.PacketError):
        sampler.run(packet, metadata=b"abc")
    assert sampler.run(packet, metadata=b"abcd").metadata[-4:] in (b"abcd", b"")


def test_a_panic_is_an_exception_of_ours() -> None:
    from paceline import _paceline

    with pytest.raises(pl.InternalError, match="a panic of a test"):
        _paceline.panic()


def test_coverage_is_lcov(examples: Path, tmp_path: Path) -> None:
    fw = pl.load(examples / "firewall.o", coverage=True)
    fw.run(pl.packet(TCP.format(23)))
    coverage = fw.coverage()
    ran, all_lines = coverage.totals["lines"]
    assert 0 < ran < all_lines
    (file,) = (name for name in coverage.lines if name.endswith("firewall.bpf.c"))
    assert coverage.lines[file][189] > 0
    coverage.write_lcov(tmp_path / "out.info", "test")
    text = (tmp_path / "out.info").read_text()
    assert text == coverage.lcov("test") and text.startswith("TN:test") and "DA:189," in text
    twice = coverage + coverage
    assert twice.lines[file][189] == 2 * coverage.lines[file][189]
    with pytest.raises(FileNotFoundError):
        coverage.write_lcov(tmp_path / "no" / "out.info")
