"""Packets as bytes with layers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Optional, SupportsBytes, Union

from . import _paceline

Buffer = Union[bytes, bytearray, memoryview, SupportsBytes]


class Packet(bytes):
    """The bytes of a packet, whose layers and fields can be read.

    `packet["tcp.dport"]` is a field; `packet.layers` is the packet in words, which `paceline.packet` makes the same bytes of. Compared by
    `assert` in pytest, packets are shown by their differences.
    """

    def __new__(cls, source: Buffer = b"") -> Packet:
        return super().__new__(cls, bytes(source))

    @property
    def layers(self) -> str:
        """The packet in words: `eth / ipv4 src=10.0.0.1 / tcp dport=23`."""
        return _paceline.layers_text(self)

    @property
    def protocols(self) -> list[str]:
        """Names of the layers, the outermost first."""
        return _paceline.layer_names(self)

    def field(self, path: str) -> Optional[Union[int, str]]:
        """A field by its path, such as `ipv4.ttl`, and `ipv4#2.ttl` for the second IPv4 header; `None` if there is none."""
        return _paceline.packet_field(self, path)

    def differences(self, other: Buffer) -> list[tuple[str, Optional[str], Optional[str]]]:
        """Differences to another packet: name of the field, value here, value there."""
        return _paceline.packet_differences(self, other)

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        value = self.field(key)
        if value is None:
            raise KeyError(f"no field {key}; the packet is {self.layers}")
        return value

    def __repr__(self) -> str:
        return f"Packet({self.layers!r})"

    __str__ = __repr__


def packet(text: str) -> Packet:
    """Makes a packet from words: `eth / ipv4 src=10.0.0.1 / tcp dport=23 / "text"`.

    Lengths, checksums and what names the next layer are computed where they are not given. Raises `PacketError`.
    """
    return Packet(_paceline.build_packet(text))


def read_capture(path: Any) -> Iterator[Packet]:
    """The packets of a capture, pcap or pcapng, one after the other. Raises `OSError` and `CaptureError`."""
    for batch in _paceline.replay(path, _paceline.classic_filter("ret #-1"), columns=["input"], batch_size=1024):
        for data in batch.column("input").to_list():
            yield Packet(data)
