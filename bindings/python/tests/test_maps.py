"""Maps as Python's collections."""

from __future__ import annotations

import copy
import dataclasses
import ipaddress
import pickle
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any

import pytest

import paceline as pl

from .conftest import library


@pytest.fixture
def fw(examples: Path) -> pl.Program:
    return pl.load(examples / "firewall.o", cpus=2)


def test_a_hash_is_a_mutable_mapping(fw: pl.Program) -> None:
    rules = fw.maps["rules"]
    assert isinstance(rules, MutableMapping) and len(rules) == 0 and {"port": 1} not in rules
    rules[{"port": 22, "protocol": 6}] = {"action": 1}
    key, value = {"port": 22, "protocol": 6, "reserved": 0}, {"action": 1, "reserved": 0, "hits": 0}
    assert rules[{"port": 22, "protocol": 6}] == value
    assert {"port": 22, "protocol": 6} in rules and len(rules) == 1
    assert list(rules) == [key] and list(rules.items()) == [(key, value)] and list(rules.values()) == [value]
    assert rules.get({"port": 23}) is None and rules.get({"port": 23}, 5) == 5
    assert rules.setdefault({"port": 22, "protocol": 6}, {"action": 0}) == value
    assert rules.pop({"port": 22, "protocol": 6}) == value and len(rules) == 0
    with pytest.raises(KeyError):
        rules[{"port": 22, "protocol": 6}]
    with pytest.raises(KeyError):
        del rules[{"port": 22, "protocol": 6}]
    assert rules.pop({"port": 22}, None) is None
    rules.update([({"port": n, "protocol": 6}, {"action": 1}) for n in range(50)])
    assert len(rules) == 50
    assert [v and v.action for v in rules.lookup_batch([{"port": 3, "protocol": 6}, {"port": 99}])] == [1, None]
    rules.clear()
    assert len(rules) == 0 and not rules
    assert (rules.name, rules.kind, rules.max_entries) == ("rules", "hash", 1024)


def test_maps_are_equal_to_their_elements(fw: pl.Program, examples: Path) -> None:
    counter = pl.load(examples / "counter.o")
    counter.run_many([bytes(pl.packet("eth / arp"))] * 3)
    assert counter.maps["by_ethertype"] == {0x0806: {"packets": 3, "bytes": 3 * len(pl.packet("eth / arp"))}}
    assert counter.maps["by_ethertype"] != {} and fw.maps["rules"] == fw.maps["rules"] == {}


def test_structures_are_read_as_values(fw: pl.Program) -> None:
    rules = fw.maps["rules"]
    rules[{"port": 22, "protocol": 6}] = {"action": 1, "hits": 7}
    rule = rules[{"port": 22, "protocol": 6}]
    assert isinstance(rule, Mapping) and rule.hits == rule["hits"] == 7 and rule._asdict()["hits"] == 7
    assert rule == rule._replace() and hash(rule) == hash(copy.deepcopy(rule)) and pickle.loads(pickle.dumps(rule)) == rule
    rules[{"port": 22, "protocol": 6}] = rule._replace(action=0)
    assert rules[{"port": 22, "protocol": 6}].action == 0
    with pytest.raises(AttributeError, match="write the element again"):
        rule.action = 1
    with pytest.raises(AttributeError, match=r"no member 'hit' \(available: action"):
        rule.hit
    with pytest.raises(AttributeError):
        rule._replace(hit=1)
    assert {rule: 1}[rule] == 1 and "action" in dir(rule) and repr(rule) == "Struct(action=1, reserved=0, hits=7)"


@dataclasses.dataclass
class Service:
    port: int
    protocol: int


def test_keys_and_values_have_many_forms(fw: pl.Program) -> None:
    rules, blocked = fw.maps["rules"], fw.maps["blocked_v4"]
    rules[Service(22, 6)] = {"action": "1"}
    assert Service(22, 6) in rules and next(iter(rules)) in rules
    assert b"\x16\x00\x06\x00" in rules
    address = ipaddress.ip_address("203.0.113.9")
    blocked[address] = 0
    for key in ("203.0.113.9", {"octets": [203, 0, 113, 9]}, {"octets": (203, 0, 113, 9)}, {"octets": address.packed},
                address.packed, bytearray(address.packed), memoryview(address.packed)):
        assert key in blocked
    assert list(blocked) == [{"octets": (203, 0, 113, 9)}] and list(blocked) == [{"octets": [203, 0, 113, 9]}]


class Odd:
    def __index__(self) -> int:
        return 3


@pytest.mark.parametrize(
    ("key", "error", "text"),
    [
        ({"port": 65536}, pl.MapValueError, "map rules, key: .*65536"),
        ({"port": -1}, pl.MapValueError, "map rules, key"),
        ({"port": 1 << 200}, pl.MapValueError, "128 bits"),
        ({"ports": 1}, pl.MapValueError, "ports"),
        ({1: 2}, pl.MapValueError, "names of members"),
        (7, pl.MapValueError, "a structure"),
        (b"abc", pl.MapValueError, "map rules"),
        (None, TypeError, "NoneType is no value"),
        (object(), TypeError, "object is no value"),
        ({"port": None}, TypeError, "map rules, key"),
        ({"port": float("nan")}, pl.MapValueError, "map rules"),
    ],
)
def test_what_fits_no_type_is_told(fw: pl.Program, key: Any, error: type[Exception], text: str) -> None:
    for use in (lambda m: m[key], lambda m: m.__setitem__(key, {}), lambda m: key in m, lambda m: m.__delitem__(key)):
        with pytest.raises(error, match=text):
            use(fw.maps["rules"])


def test_values_that_contain_themselves_end(fw: pl.Program) -> None:
    endless: dict[str, Any] = {}
    endless["port"] = endless
    with pytest.raises(pl.MapValueError, match="nested too deep"):
        fw.maps["rules"][endless]
    ring: list[Any] = []
    ring.append(ring)
    with pytest.raises(pl.MapValueError):
        fw.maps["blocked_v4"][{"octets": ring}] = 0


def test_numbers_are_what_index_says(fw: pl.Program) -> None:
    fw.maps["rules"][{"port": Odd(), "protocol": True}] = {"action": 1}
    assert {"port": 3, "protocol": 1} in fw.maps["rules"]


def test_per_cpu_values_are_tuples(fw: pl.Program) -> None:
    counters = fw.maps["counters"]
    assert len(counters) == counters.max_entries and counters[0] == ({"packets": 0, "bytes": 0},) * 2
    counters[0] = [{"packets": 1}, {"packets": 2, "bytes": 9}]
    assert [value.packets for value in counters[0]] == [1, 2]
    for wrong in ([{"packets": 1}], {"packets": 1}, 5, "ab"):
        with pytest.raises((pl.MapValueError, TypeError)):
            counters[0] = wrong
    with pytest.raises(IndexError):
        counters[1000]
    with pytest.raises(IndexError):
        counters[1000] = counters[0]
    with pytest.raises(pl.MapError) as error:
        del counters[0]
    assert error.value.errno == 22
    counters.clear()
    assert counters[0] == ({"packets": 0, "bytes": 0},) * 2


def test_elements_as_bytes(fw: pl.Program) -> None:
    plain = fw.maps["rules"].bytes
    plain[b"\x16\x00\x06\x00"] = (1).to_bytes(4, "little") + bytes(12)
    assert fw.maps["rules"][{"port": 22, "protocol": 6}].action == 1
    assert dict(plain) == {b"\x16\x00\x06\x00": b"\x01" + bytes(15)}
    with pytest.raises(pl.MapValueError, match="4 bytes are expected"):
        plain[b"\x16"]


def test_flags_and_limits(fw: pl.Program) -> None:
    rules = fw.maps["rules"]
    with pytest.raises(pl.MapError) as error:
        rules.set({"port": 1}, {"action": 1}, pl.EXIST)
    assert error.value.errno == 2
    rules.set({"port": 1}, {"action": 1}, pl.NOEXIST)
    with pytest.raises(pl.MapError) as error:
        rules.set({"port": 1}, {"action": 1}, pl.NOEXIST)
    assert error.value.errno == 17
    with pytest.raises(pl.MapError) as error:
        rules.update([({"port": n, "protocol": 1}, {}) for n in range(1025)])
    assert error.value.errno == 7 and error.value.place == "map rules"
    rules.freeze()
    assert rules.is_frozen
    with pytest.raises(pl.MapError):
        rules[{"port": 1}] = {"action": 1}


def test_a_wrong_element_of_many_changes_nothing(fw: pl.Program) -> None:
    with pytest.raises(pl.MapValueError):
        fw.maps["rules"].update([({"port": 1}, {"action": 1}), ({"port": -1}, {"action": 1})])
    assert len(fw.maps["rules"]) == 0


def test_maps_change_while_they_are_iterated(fw: pl.Program) -> None:
    rules = fw.maps["rules"]
    rules.update([({"port": n}, {"action": 1}) for n in range(100)])
    for key in rules:
        del rules[key]
    assert len(rules) == 0


def test_program_arrays(examples: Path) -> None:
    loaded = pl.Object(examples / "protocols.o").load()
    dispatch, drop = loaded.program("dispatch"), loaded.program("drop")
    table = loaded.maps["protocols"]
    udp = pl.packet("eth / ipv4 / udp dport=53")
    before = dispatch.run(udp).verdict
    table[17] = drop
    assert table[17] == "drop" and 17 in table and dispatch.run(udp).verdict == pl.DROP
    assert len(table) == len(list(table)) >= 1
    del table[17]
    assert 17 not in table and dispatch.run(udp).verdict == pl.PASS != pl.DROP
    assert before in list(pl.Verdict)
    with pytest.raises(KeyError):
        del table[17]
    with pytest.raises(KeyError):
        table[17]
    with pytest.raises(pl.MapError):
        table[1 << 31] = drop
    with pytest.raises((AttributeError, TypeError)):
        table[17] = "drop"


def test_the_mapping_of_maps(fw: pl.Program) -> None:
    assert set(fw.maps) == {"rules", "blocked_v4", "blocked_v6", "counters", ".rodata"}
    assert "rules" in repr(fw.maps) and repr(fw.maps["rules"]) == "<Map rules: hash, at most 1024 entries>"


FIXTURES = Path(__file__).resolve().parents[3] / "crates/cli/tests/fixtures"


def test_every_kind_has_its_class() -> None:
    maps = pl.load(FIXTURES / "state.o").maps
    queue, stack, seen, outer, prefixes = (maps[name] for name in ("queue", "stack", "seen", "outer", "prefixes"))
    for target, order in ((queue, [7, 8]), (stack, [8, 7])):
        assert isinstance(target, pl.Queue) and len(target) == 0
        target.push(7)
        target.push(8)
        assert len(target) == 2 and 7 in target and target.peek() == order[0]
        assert [target.pop(), target.pop()] == order
        with pytest.raises(IndexError, match="is empty"):
            target.pop()
    for n in range(queue.max_entries):
        queue.push(n)
    with pytest.raises(pl.MapError) as error:
        queue.push(0)
    assert error.value.errno == 7
    assert isinstance(seen, pl.Bloom)
    seen.add(5)
    assert 5 in seen and 6 not in seen
    prefixes["10.0.0.0/8"] = 3
    assert prefixes[{"length": 8, "address": "10.0.0.0"}] == 3 == prefixes["10.1.2.3/32"] and "11.0.0.0/8" not in prefixes
    assert isinstance(maps["recent"], pl.Map) and maps[".bss"][0].packets == 0


def test_maps_of_maps() -> None:
    maps = pl.load(FIXTURES / "state.o").maps
    outer = maps["outer"]
    assert isinstance(outer, pl.MapOfMaps) and 7 not in outer
    before = len(outer)
    outer[7] = {0: 5}
    assert outer[7] == {0: 5, 1: 0} and 7 in outer and len(outer) == before + 1 and 7 in list(outer)
    outer[7][1] = 6
    assert outer[7][1] == 6
    outer[7] = maps["left"]
    assert outer[7] == maps["left"] and outer[7].name == "left"
    del outer[7]
    with pytest.raises(KeyError):
        outer[7]
    with pytest.raises(pl.MapError, match="cannot hold"):
        outer[7] = maps["flows"]
    with pytest.raises((TypeError, pl.MapValueError)):
        outer[7] = 5


def test_enumerators_have_names() -> None:
    variables = pl.load(FIXTURES / "types.o").variables
    verdict = variables["verdict"]
    assert isinstance(verdict, pl.Enumerator) and (verdict, verdict.name) == (0, "ALLOW") and repr(verdict) == "<ALLOW: 0>"
    assert pickle.loads(pickle.dumps(verdict)).name == "ALLOW"
    assert pl.load(FIXTURES / "types.o", variables={"verdict": "ALLOW"}).variables["verdict"] == 0


def test_per_cpu_hashes() -> None:
    recent = pl.load(FIXTURES / "state.o", cpus=3).maps["recent"]
    key = next(iter(recent), 1)
    try:
        recent[key] = [1, 2, 3]
    except pl.MapValueError:
        recent[bytes(recent._raw.key_size)] = [bytes(recent._raw.value_size)] * 3
    ((_, value),) = recent.items()
    assert len(value) == 3


def test_maps_from_and_to_arrow(fw: pl.Program) -> None:
    pa = library("pyarrow")
    rules, blocked, counters = (fw.maps[name] for name in ("rules", "blocked_v4", "counters"))
    rules.update([({"port": port, "protocol": 6}, {"action": 1, "hits": port}) for port in range(300)])
    table = pa.table(rules.to_arrow())
    assert table.schema.field("key").type == pa.struct(
        [pa.field(n, t, nullable=False) for n, t in (("port", pa.uint16()), ("protocol", pa.uint8()), ("reserved", pa.uint8()))]
    )
    assert {row["key"]["port"]: row["value"]["hits"] for row in table.to_pylist()} == {n: n for n in range(300)}
    expected = dict(rules.items())
    rules.clear()
    rules.update(table)
    assert dict(rules.items()) == expected
    rules.clear()
    rules.update(pa.table({"key": [{"port": 7, "protocol": 17}], "value": [{"action": 1}]}))
    assert dict(rules.items()) == {k: v for k, v in [(next(iter(rules)), {"action": 1, "reserved": 0, "hits": 0})]}
    blocked.update(pa.table({"key": ["10.0.0.1", "10.0.0.2"], "value": [1, 2]}))
    assert blocked["10.0.0.2"] == 2
    assert pa.table(blocked.to_arrow())["key"].to_pylist()[0].keys() == {"octets"}
    fw.run(pl.packet("eth / arp"))
    table = pa.table(counters.to_arrow())
    assert table.num_rows == len(counters) and len(table["value"][0]) == 2
    before = dict(counters.items())
    counters.clear()
    counters.update(table)
    assert dict(counters.items()) == before and before[1][0].packets == 1
    for wrong, text in [
        ({"key": [{"port": 1}], "value": [None]}, "null"),
        ({"key": [{"ports": 1}], "value": [{"action": 1}]}, "ports"),
        ({"key": [{"port": 1 << 20}], "value": [{"action": 1}]}, "does not fit"),
        ({"key": [1.5], "value": [{"action": 1}]}, "a structure"),
    ]:
        with pytest.raises(pl.MapValueError, match=text):
            rules.update(pa.table(wrong))
    with pytest.raises(KeyError, match="no column value"):
        rules.update(pa.table({"key": [1]}))
    assert len(pa.table(pl.load(FIXTURES / "state.o").maps["flows"].to_arrow())) == 0


def test_addresses_have_the_text_that_people_write() -> None:
    collection = pl.load(FIXTURES / "written.o", "written", variables={"passed_port": "htons(80)"})
    blocked, services = collection.maps["blocked"], collection.maps["services"]
    blocked["10.9.1.0/24"] = 1
    blocked["10.9.1.1"] = 2
    keys = sorted(blocked, key=lambda key: key.length)
    assert repr(keys[0]).startswith("<10.9.1.0/24: Struct(length=24, address=") and keys[1].length == 32
    assert pickle.loads(pickle.dumps(keys[0])) == keys[0] and blocked[keys[0]] == 1
    services["htons(22)"] = {"address": "10.0.0.1", "port": "htons(8080)", "mac": "02:00:00:00:00:09"}
    (port, service), = services.items()
    assert (repr(port), str(port), port.text) == (f"<htons(22): {int(port)}>", str(int(port)), "htons(22)")
    assert service.address.text == "10.0.0.1"
    assert isinstance(service.mac, pl.WrittenTuple) and service.mac == (2, 0, 0, 0, 0, 9)
    assert service.mac.text == "02:00:00:00:00:09" and service.addr6.text == "::" and service.pad == (0,) * 6
    assert pickle.loads(pickle.dumps(service)) == service and pickle.loads(pickle.dumps(service.mac)).text == service.mac.text
    # What was read is taken again.
    services[port] = service
    assert dict(services) == {port: service}
    assert collection.variables["passed_port"].text == "htons(80)"
