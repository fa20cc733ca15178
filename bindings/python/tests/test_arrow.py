"""Many packets, captures, and Arrow."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import paceline as pl

from .conftest import library

TCP = "eth / ipv4 src=10.0.0.9 / tcp dport={}"


@pytest.fixture
def fw(examples: Path) -> pl.Program:
    return pl.load(examples / "firewall.o")


def packets() -> list[bytes]:
    return [bytes(pl.packet(TCP.format(port))) for port in range(1, 300)]


def test_many_packets_from_every_source_get_the_same_verdicts(fw: pl.Program) -> None:
    pa, np, polars = library("pyarrow"), library("numpy"), library("polars")
    given = packets()
    expected = [str(fw.run(packet).verdict) for packet in given]
    assert "drop" in expected and "pass" in expected
    length = len(given[0])
    assert all(len(packet) == length for packet in given)
    array = np.frombuffer(b"".join(given), dtype=np.uint8).reshape(len(given), length)
    sources = {
        "list": given,
        "generator": (packet for packet in given),
        "words": [pl.Packet(packet) for packet in given],
        "array": array,
        "not contiguous": np.asfortranarray(array),
        "byte strings": np.array(given, dtype=f"S{length}"),
        "binary": pa.array(given),
        "large": pa.array(given, pa.large_binary()),
        "view": pa.array(given, pa.binary_view()),
        "fixed": pa.array(given, pa.binary(length)),
        "chunked": pa.chunked_array([given[:100], given[100:]]),
        "sliced": pa.array([b"x", *given, b"y"]).slice(1, len(given)),
        "table": pa.table({"data": given, "other": range(len(given))}),
        "polars": polars.Series(given),
        "polars table": polars.DataFrame({"data": given}),
    }
    for name, source in sources.items():
        batch = fw.run_many(source)
        assert pa.array(batch["verdict"]).to_pylist() == expected, name


def test_long_lists_run_in_parts(fw: pl.Program) -> None:
    given = packets() * 200
    assert sum(map(len, given)) > 3 << 20
    batch = fw.run_many(given, columns=["number", "verdict", "data"])
    assert batch["data"].to_list() == given and batch["number"].to_list() == list(range(1, len(given) + 1))
    assert batch["verdict"].to_list() == fw.run_many(packets())["verdict"].to_list() * 200


def test_columns(fw: pl.Program) -> None:
    pa = library("pyarrow")
    names = ["number", "length", "captured_length", "verdict", "code", "input", "data", "metadata", "redirect_key"]
    batch = fw.run_many(packets(), columns=names)
    assert batch.column_names == names and len(batch) == 299
    table = pa.table(batch)
    assert table.column_names == names and table["number"].to_pylist() == list(range(1, 300))
    assert table["input"].to_pylist() == packets() == table["data"].to_pylist()
    assert table["code"].to_pylist() == [{"drop": 1, "pass": 2}[v] for v in table["verdict"].to_pylist()]
    assert set(table["redirect_key"].to_pylist()) == {None}
    for wrong, text in ((["nothing"], r"no column nothing \(available: number"), (["data", "data"], "twice")):
        with pytest.raises(ValueError, match=text):
            fw.run_many([], columns=wrong)
    with pytest.raises(KeyError, match="no column data"):
        fw.run_many([])["data"]
    assert len(fw.run_many([])) == 0 and len(fw.run_many(packets(), columns=[])) == 299


def test_programs_that_change_packets(examples: Path) -> None:
    pa = library("pyarrow")
    vlan = pl.load(examples / "vlan.o", "vlan_pop")
    tagged = pl.packet("eth / vlan id=5 / ipv4 / udp dport=53")
    batch = vlan.run_many([tagged] * 100, columns=["length", "captured_length", "data"])
    table = pa.table(batch).to_pylist()
    assert {(row["captured_length"], row["length"]) for row in table} == {(len(tagged), len(tagged) - 4)}
    assert {row["data"] for row in table} == {vlan.run(tagged).data}


def test_captures_become_batches(fw: pl.Program, examples: Path) -> None:
    pa = library("pyarrow")
    replay = pl.replay(examples / "traffic.pcap", fw, columns=["time", "verdict", "length", "data"], batch_size=100)
    batches = list(replay)
    assert [len(batch) for batch in batches] == [100, 100, 100, 100, 92]
    table = pa.Table.from_batches([pa.record_batch(batch) for batch in batches])
    assert table.schema.field("time").type == pa.timestamp("ns", tz="UTC")
    expected = records(examples / "traffic.pcap")
    assert [t.value for t in table["time"]] == [time for time, _ in expected]
    assert sum(replay.verdicts.values()) == replay.packets == 492
    counts = dict(zip(*(c.to_pylist() for c in table["verdict"].combine_chunks().dictionary_decode().value_counts().flatten())))
    assert counts == {name: n for name, n in replay.verdicts.items() if n}
    again = pl.replay((examples / "traffic.pcap").read_bytes(), pl.load(examples / "firewall.o"), columns=["time", "verdict", "length", "data"])
    assert pa.table(again).to_pylist() == table.to_pylist()
    assert next(again, None) is None
    ng = pl.replay(examples / "traffic.pcapng", pl.load(examples / "firewall.o"), columns=["verdict", "data"])
    assert pa.table(ng)["verdict"].to_pylist() == table["verdict"].to_pylist()


def records(path: Path) -> list[tuple[int, bytes]]:
    """Times in nanoseconds and bytes of a little-endian pcap."""
    data = path.read_bytes()
    scale = {0xA1B2C3D4: 1000, 0xA1B23C4D: 1}[struct.unpack_from("<I", data)[0]]
    at, found = 24, []
    while at < len(data):
        seconds, part, captured, _ = struct.unpack_from("<IIII", data, at)
        found.append((seconds * 10**9 + part * scale, data[at + 16 : at + 16 + captured]))
        at += 16 + captured
    return found


def test_a_filter_gives_the_packets_of_the_capture(examples: Path) -> None:
    pa = library("pyarrow")
    everything = pl.filter("")
    table = pa.table(pl.replay(examples / "traffic.pcap", everything, columns=["time", "data", "input"]))
    assert table["data"].to_pylist() == table["input"].to_pylist() == [data for _, data in records(examples / "traffic.pcap")]


def test_other_libraries_take_batches_as_they_are(fw: pl.Program, examples: Path) -> None:
    pa, polars, duckdb, pandas = library("pyarrow"), library("polars"), library("duckdb"), library("pandas")
    columns = ["time", "verdict", "length", "data"]
    table = pa.table(pl.replay(examples / "traffic.pcap", fw, columns=columns))
    dropped = table["verdict"].to_pylist().count("drop")

    def fresh() -> pl.Replay:
        return pl.replay(examples / "traffic.pcap", pl.load(examples / "firewall.o"), columns=columns)

    frame = polars.DataFrame(fresh())
    assert frame.filter(polars.col("verdict") == "drop").height == dropped
    stream = fresh()
    assert duckdb.sql("select count(*) from stream where verdict = 'drop'").fetchall() == [(dropped,)]
    assert (pandas.DataFrame.from_arrow(fresh())["verdict"] == "drop").sum() == dropped
    batch = fw.run_many(packets(), columns=["verdict", "data"])
    assert polars.DataFrame(batch).height == len(pandas.DataFrame.from_arrow(batch)) == 299
    assert polars.Series(batch["verdict"]).len() == 299


def test_buffers_outlive_what_they_come_from(fw: pl.Program, examples: Path) -> None:
    pa = library("pyarrow")
    batch = fw.run_many(packets(), columns=["data"])
    array = pa.array(batch["data"])
    del batch
    column = pa.array(packets())
    taken = fw.run_many(column, columns=["data"])
    del column
    for _ in range(50):
        fw.run_many(packets(), columns=["data"])
    assert array.to_pylist() == packets() == pa.table(taken)["data"].to_pylist()


def test_what_is_no_column_of_packets(fw: pl.Program) -> None:
    pa, np = library("pyarrow"), library("numpy")
    for wrong, error, text in [
        (pa.array([1, 2]), TypeError, "not of Int64"),
        (pa.array(["a"]), TypeError, "not of Utf8"),
        (pa.array([b"a", None]), ValueError, "packets\\[1\\] is null"),
        (pa.table({"x": [b"a"]}), ValueError, "no column data"),
        (np.zeros((2, 2, 2), np.uint8), TypeError, "3 dimensions"),
        (np.zeros(5, np.uint8), TypeError, "1 dimensions"),
        (np.zeros((2, 2), np.float64), TypeError, "elements of 8 bytes"),
        (b"abc", TypeError, "this is one packet"),
        ([b"a", 5], TypeError, "packets\\[1\\]"),
        ([b"a", bytes(1 << 20)], pl.PacketError, "longer than a frame"),
        (5, TypeError, "not iterable"),
        (None, TypeError, "not iterable"),
    ]:
        with pytest.raises(error, match=text):
            fw.run_many(wrong)
    assert fw.run(packets()[0]).verdict == pl.PASS


def test_damaged_captures(fw: pl.Program, examples: Path, tmp_path: Path) -> None:
    whole = (examples / "traffic.pcap").read_bytes()
    replay = pl.replay(whole[:-3], fw, batch_size=200)
    lengths = []
    with pytest.raises(pl.CaptureError) as error:
        for batch in replay:
            lengths.append(len(batch))
    assert sum(lengths) == 491 and error.value.cause
    assert next(replay, None) is None
    path = tmp_path / "cut.pcap"
    path.write_bytes(whole[:10])
    with pytest.raises(pl.CaptureError) as error:
        pl.replay(path, fw)
    assert error.value.file == str(path)
    pa = library("pyarrow")
    with pytest.raises(Exception, match="traffic|packet|record|capture|bytes"):
        pa.table(pl.replay(whole[:-3], fw))
    with pytest.raises(FileNotFoundError):
        pl.replay(tmp_path / "no.pcap", fw)
    with pytest.raises(ValueError, match="batch_size"):
        pl.replay(whole, fw, batch_size=0)
    with pytest.raises(ValueError, match="clock"):
        pl.replay(whole, fw, clock="sun")  # type: ignore[arg-type]


def test_a_count_ends_a_replay(fw: pl.Program, examples: Path) -> None:
    replay = pl.replay(examples / "traffic.pcap", fw, count=70, batch_size=50)
    assert [len(batch) for batch in replay] == [50, 20] and replay.packets == 70
