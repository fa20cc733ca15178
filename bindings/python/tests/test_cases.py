"""Every text case of an XDP program through Python, compared with the Rust library."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import paceline as pl
from paceline import _paceline

from .conftest import ROOT, missing


def exported() -> Iterator[dict[str, Any]]:
    """The cases as `paceline-testkit cases --export tests/cases` prints them, from a file or from the command."""
    if path := os.environ.get("PACELINE_CASES"):
        lines = Path(path).read_text().splitlines()
    else:
        target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
        commands = [target / profile / "paceline-testkit" for profile in ("release", "debug")]
        found = [command for command in commands if command.exists()]
        if not found:
            return
        output = subprocess.run([found[0], "cases", "--export", str(ROOT / "tests/cases")], check=True, capture_output=True)
        lines = output.stdout.decode().splitlines()
    yield from map(json.loads, lines)


CASES = list(exported())


def test_there_are_cases() -> None:
    if not CASES:
        missing("text cases", "paceline-testkit is not built, and PACELINE_CASES names no file")
    assert sum("runs" in case and len(case["runs"]) > 0 for case in CASES) > 500


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_case(case: dict[str, Any]) -> None:
    made = _paceline.object_of_case(json.dumps(case))
    if "refused" in case:
        with pytest.raises(pl.PacelineError) as error:
            made.verify()
            made.load().program(case["programs"][0]["name"])
        if isinstance(error.value, pl.VerifierError):
            assert case["refused"] == error.value.cause
        else:
            assert case["refused"] in str(error.value)
        return
    loaded = made.load()
    program = loaded.program(case["programs"][0]["name"])
    network = pl.Network(case["network"]) if case["network"] else None
    time = 0
    for run in case["runs"]:
        time += run["wait_ms"] * 1_000_000
        ours = outcome(loaded, program, network, run, time)
        assert ours == run["outcome"]
        assert {name: ours.get(name) for name in run["expected"]} == run["expected"]
    assert contents(loaded) == {name: dict(elements) for name, elements in case["after"].items()}


def outcome(
    loaded: pl.Collection, program: pl.Program, network: Any, run: dict[str, Any], time: int
) -> dict[str, Any]:
    try:
        for change in run["changes"]:
            apply(loaded, change)
    except (pl.PacelineError, LookupError):
        return dict(run["outcome"]) if "refused" in run["outcome"] else {"refused": "in Python"}
    try:
        ran = program.run(
            bytes.fromhex(run["data"]),
            metadata=bytes.fromhex(run["metadata"]),
            ingress=run["ingress"],
            queue=run["queue"],
            time=run["time"] + time,
            seed=1,
            network=network,
        )
    except pl.FaultError as fault:
        return {"fault": str(fault)}
    except pl.PacketError:
        return dict(run["outcome"]) if "refused" in run["outcome"] else {"refused": "in Python"}
    redirect = None
    if ran.redirect is not None:
        where = ran.redirect
        redirect = f"interface {where.interface}" if where.interface is not None else f"{where.map} {where.key}"
    return {
        "code": ran.code,
        "verdict": str(ran.verdict),
        "data": ran.data.hex(),
        "metadata": ran.metadata.hex(),
        "redirect": redirect,
    }


def apply(loaded: pl.Collection, change: dict[str, Any]) -> None:
    target, key, value = loaded.maps[change["map"]], bytes.fromhex(change["key"]), change["value"]
    if isinstance(target, pl.ProgramArray):
        index = int.from_bytes(key, "little")
        if value is None:
            del target[index]
        else:
            target[index] = loaded.program(value["program"])
    elif isinstance(target, pl.MapOfMaps):
        if value is None:
            del target[key]
        else:
            target[key] = loaded.maps[list(loaded.maps)[value["map"]]]
    elif value is None:
        del target.bytes[key]
    else:
        size = target._raw.value_size
        whole = bytes.fromhex(value["bytes"]).ljust(size, b"\0")
        target.bytes[key] = [whole] if target._raw.kind.startswith("percpu") or "percpu" in target._raw.kind else whole


def contents(loaded: pl.Collection) -> dict[str, dict[str, str]]:
    found = {}
    for name, target in loaded.maps.items():
        if isinstance(target, pl.Map):
            found[name] = {key.hex(): hexadecimal(target, value) for key, value in target.bytes.items()}
    return found


def hexadecimal(target: pl.Map, value: Any) -> str:
    if not isinstance(value, tuple):
        return value.hex()
    stride = -(-target._raw.value_size // 8) * 8
    return "".join(one.ljust(stride, b"\0").hex() for one in value)
