"""Strategies of hypothesis for packets and contents of maps. Needs the package `hypothesis`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Optional

from hypothesis import strategies as st

from ._maps import Map
from ._packets import Packet, packet

_LINKS = {
    "eth": ["arp", "ipv4", "ipv6", "vlan"],
    "vlan": ["arp", "ipv4", "ipv6"],
    "ipv4": ["tcp", "udp", "icmp"],
    "ipv6": ["tcp", "udp", "icmpv6"],
}


@st.composite
def packets(
    draw: st.DrawFn,
    /,
    layers: Optional[Sequence[str]] = None,
    max_payload: int = 64,
    **fields: Any,
) -> Packet:
    """Packets whose headers are well formed: lengths, checksums and the names of next layers fit.

    `layers` are the names of the protocols, such as `["eth", "ipv4", "tcp"]`; without them they are drawn. `fields` are strategies or
    values of fields, with two underscores for the dot: `tcp__dport=st.integers(1, 1023)`. Fields that are not given are drawn among
    those that name addresses and ports.
    """
    names = list(layers) if layers is not None else draw(_stacks())
    words = []
    for name in names:
        given = {field: _drawn(draw, value) for path, value in fields.items() for of, field in [path.split("__", 1)] if of == name}
        for field, strategy in _FIELDS.get(name, {}).items():
            if field not in given:
                given[field] = draw(strategy)
        words.append(" ".join([name, *(f"{field}={value}" for field, value in given.items())]))
    unknown = [path for path in fields if path.split("__", 1)[0] not in names]
    if unknown:
        raise ValueError(f"no layer for {', '.join(unknown)}; the layers are {', '.join(names)}")
    payload = draw(st.binary(max_size=max_payload))
    if payload:
        words.append("0x" + payload.hex())
    return packet(" / ".join(words))


def _drawn(draw: st.DrawFn, value: Any) -> Any:
    return draw(value) if isinstance(value, st.SearchStrategy) else value


@st.composite
def _stacks(draw: st.DrawFn) -> list[str]:
    names = ["eth"]
    while names[-1] in _LINKS:
        names.append(draw(st.sampled_from(_LINKS[names[-1]])))
    return names


_PORTS = st.integers(0, 65535)
_MAC = st.binary(min_size=6, max_size=6).map(lambda raw: raw.hex(":"))
_FIELDS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "eth": {"src": _MAC, "dst": _MAC},
    "vlan": {"id": st.integers(0, 4095)},
    "ipv4": {"src": st.ip_addresses(v=4), "dst": st.ip_addresses(v=4), "ttl": st.integers(0, 255)},
    "ipv6": {"src": st.ip_addresses(v=6), "dst": st.ip_addresses(v=6), "hlim": st.integers(0, 255)},
    "tcp": {"sport": _PORTS, "dport": _PORTS, "seq": st.integers(0, 2**32 - 1)},
    "udp": {"sport": _PORTS, "dport": _PORTS},
}


@st.composite
def damaged_packets(draw: st.DrawFn, packets: st.SearchStrategy[bytes] = packets()) -> Packet:
    """Packets with bytes changed, cut off or added anywhere, as parsers must stand them."""
    data = bytearray(draw(packets))
    for _ in range(draw(st.integers(1, 4))):
        if not data:
            break
        at = draw(st.integers(0, len(data) - 1))
        kind = draw(st.sampled_from(["change", "cut", "add"]))
        if kind == "change":
            data[at] = draw(st.integers(0, 255))
        elif kind == "cut":
            del data[at:]
        else:
            data[at:at] = draw(st.binary(max_size=16))
    return Packet(bytes(data))


def keys(map: Map) -> st.SearchStrategy[bytes]:
    """Keys of a map, as bytes."""
    raw = map._raw
    if "array" in raw.kind:
        return st.integers(0, raw.max_entries - 1).map(lambda index: index.to_bytes(4, sys.byteorder))
    if raw.kind == "lpm_trie":
        bits = 8 * (raw.key_size - 4)
        prefix = st.tuples(st.integers(0, bits), st.binary(min_size=raw.key_size - 4, max_size=raw.key_size - 4))
        return prefix.map(lambda p: p[0].to_bytes(4, sys.byteorder) + p[1])
    return st.binary(min_size=raw.key_size, max_size=raw.key_size)


def values(map: Map) -> st.SearchStrategy[bytes]:
    """Values of a map, as bytes: of one CPU in per-CPU maps."""
    size = map._raw.value_size
    return st.one_of(st.just(bytes(size)), st.binary(min_size=size, max_size=size))


def contents(map: Map, max_size: int = 16) -> st.SearchStrategy[dict[bytes, Any]]:
    """Elements of a map, by key: `map.update(contents)` sets them."""
    element = values(map)
    if "percpu" in map._raw.kind:
        cpus = map._raw.cpus
        element = st.lists(element, min_size=cpus, max_size=cpus)  # type: ignore[assignment]
    return st.dictionaries(keys(map), element, max_size=min(max_size, map.max_entries))


__all__ = ["contents", "damaged_packets", "keys", "packets", "values"]
