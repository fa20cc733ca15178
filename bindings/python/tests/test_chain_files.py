"""Chain files, loaded with all that they name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import paceline as pl

TCP = "eth / ipv4 src=10.0.0.9 / tcp dport={}"

CHAIN = """\
first = "count"

[objects]
counter.file = "{examples}/counter.o"
fw.file = "{examples}/firewall.o"
fw.maps.rules.elements = [{{ key = {{ port = 22, protocol = 6 }}, value = {{ action = 1 }} }}]

[[program]]
name = "count"
object = "counter"
next.pass = "filter"

[[program]]
name = "filter"
object = "fw"
end.drop = "tx"
"""


@pytest.fixture
def text(examples: Path) -> str:
    return CHAIN.format(examples=os.path.abspath(examples))


def write(folder: Path, text: str) -> Path:
    path = folder / "chain.toml"
    path.write_text(text)
    return path


def test_a_chain_file_gives_a_chain_with_its_maps(text: str, tmp_path: Path) -> None:
    chain = pl.Chain.from_file(write(tmp_path, text))
    assert chain.names == ["count", "filter"] and list(chain.maps) == ["count", "filter"]
    assert chain.run(pl.packet(TCP.format(22))).verdict == pl.TX
    assert chain.maps["filter"]["rules"][{"port": 22, "protocol": 6}].hits == 1
    assert chain.maps["count"]["by_ethertype"][0x0800].packets == 1
    chain.maps["filter"]["rules"][{"port": 80, "protocol": 6}] = {"action": 1}
    assert chain.run(pl.packet(TCP.format(80))).verdict == pl.TX
    why = chain.run(pl.packet(TCP.format(22))).why()
    assert "rules[{port: 22" in str(why) and len(why.data) == 2
    recorded = chain.run(pl.packet(TCP.format(22)), explain=True)
    assert (recorded.verdict, recorded.code) == (pl.TX, pl.TX)
    # Each chain has maps of its own.
    other = pl.Chain.from_file(str(tmp_path / "chain.toml"), engine="plain", cpus=2)
    assert len(other.maps["filter"]["rules"]) == 1 and len(chain.maps["filter"]["rules"]) == 2


def test_the_chain_changes_as_any_other(text: str, tmp_path: Path, examples: Path) -> None:
    sequence = text.replace('first = "count"\n', "").replace('next.pass = "filter"\n', "").replace('end.drop = "tx"\n', "")
    chain = pl.Chain.from_file(write(tmp_path, sequence))
    chain.remove("count")
    assert list(chain.maps) == ["filter"]
    chain.add(("again", pl.load(examples / "counter.o")))
    assert list(chain.maps) == chain.names == ["filter", "again"]
    assert chain.run(pl.packet(TCP.format(22))).verdict == pl.DROP


def test_filters_are_programs_of_a_file(text: str, tmp_path: Path) -> None:
    (tmp_path / "ip.bpf").write_text("ldh [12]\njne #0x800, drop\nret #-1\ndrop: ret #0\n")
    filtered = '[objects.ip]\nclassic = "ip.bpf"\n\n[[program]]\nname = "ip"\n'
    chain = pl.Chain.from_file(write(tmp_path, filtered))
    assert chain.run(pl.packet("eth / ipv4 / tcp")).verdict == pl.PASS
    assert chain.run(pl.packet("eth / ipv6 / tcp")).verdict == pl.DROP
    assert len(chain.maps["ip"]) == 0


@pytest.mark.parametrize(
    ("old", "new", "place", "cause"),
    [
        ("firewall.o", "firewal.o", "5:11", "firewal.o: No such file or directory (os error 2)"),
        ("first =", "fist =", "1:1", "unknown key `fist` in a chain file; did you mean `first`?"),
        ('"count"\n\n', "7\n\n", "1:9", "`first` is a text"),
        ('name = "filter"', 'name = "filter"\nfunction = "fire"', "15:12", "fw: no program fire (available: firewall)"),
        ("maps.rules.elements", "maps.rulez.elements", "6:9", "the object has no map `rulez`"),
        ("port = 22", "port = 65536", "6:26", ".port: 65536 does not fit"),
        ("fw.maps.rules", 'counter.maps.by_ethertype.from = "fw"\nfw.maps.by_ethertype.from = "counter"\n#', "6:34", "another object itself"),
        ('end.drop = "tx"', 'end.drop = "tx"\nnext.drop = "count"', "16:5", "a verdict has `next` or `end`, not both"),
    ],
)
def test_what_is_wrong_has_its_place(text: str, tmp_path: Path, old: str, new: str, place: str, cause: str) -> None:
    assert old in text
    path = write(tmp_path, text.replace(old, new, 1))
    with pytest.raises(pl.ChainError) as caught:
        pl.Chain.from_file(path)
    error = caught.value
    assert (error.file, error.place) == (str(path), place), error
    assert cause in (error.cause or ""), error.cause
    assert str(error).startswith(str(path))


def test_other_wrong_files(text: str, tmp_path: Path, examples: Path) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        pl.Chain.from_file(tmp_path / "none.toml")
    assert missing.value.filename == str(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(pl.ChainError, match="not valid UTF-8") as binary:
        pl.Chain.from_file(tmp_path / "binary.toml")
    assert (binary.value.file, binary.value.place) == (str(tmp_path / "binary.toml"), "1:1")
    for cpus in (0, 1 << 20):
        with pytest.raises(ValueError, match="cpus is 1 to"):
            pl.Chain.from_file(write(tmp_path, text), cpus=cpus)
    with pytest.raises(TypeError):
        pl.Chain.from_file(7)  # type: ignore[arg-type]

    wrong = os.path.abspath(examples / "../crates/cli/tests/fixtures/wrong_pointer.o")
    file = write(tmp_path, f'[objects.wrong]\nfile = "{wrong}"\n\n[[program]]\nname = "wrong"\n')
    with pytest.raises(pl.VerifierError) as refused:
        pl.Chain.from_file(file)
    assert refused.value.line == 17 and refused.value.file == wrong
    chain = pl.Chain.from_file(file, verify=False)
    with pytest.raises(pl.FaultError):
        chain.run(b"\0" * 14)

    (tmp_path / "rules.json").write_text('[{"key": 1,')
    for name, cause in [("rules.json", "line 1, column 11: the text ends within"), ("none.json", "No such file")]:
        broken = text.replace("fw.maps.rules.elements", f'fw.maps.rules.file = "{name}"\n#')
        with pytest.raises(pl.ChainError, match=cause) as wrong_map:
            pl.Chain.from_file(write(tmp_path, broken))
        assert (wrong_map.value.file, wrong_map.value.place) == (str(tmp_path / "chain.toml"), "6:22")
        assert f"{tmp_path / name}: {cause}" in str(wrong_map.value)
