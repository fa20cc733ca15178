"""What wrong, odd and hostile callers do: exceptions, and never a crash."""

from __future__ import annotations

import gc
import inspect
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import paceline as pl
from paceline import _paceline

ODD: list[Any] = [
    None, True, -1, 0, 1, 1 << 31, 1 << 32, 1 << 63, 1 << 64, 1 << 200, 0.5, float("nan"), float("inf"), "", "a", "\0", "\ud800",
    b"", b"\0" * 70000, bytearray(b"x"), memoryview(b"xyz")[::2], [], [[]], [None], {}, {"a": 1}, {1: 2}, (), ("a", None), set(), object(), int,
    print, range(1000), Ellipsis, lambda: 1,
]


class Lies:
    """An object whose special methods return what they must not, or raise."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def _say(self, *_: Any) -> Any:
        if isinstance(self.answer, type) and issubclass(self.answer, BaseException):
            raise self.answer("no")
        return self.answer

    __bytes__ = __index__ = __len__ = __fspath__ = __iter__ = __getitem__ = __arrow_c_array__ = __arrow_c_stream__ = _say
    keys = items = timestamp = _say


ODD += [Lies(answer) for answer in (None, 5, b"abc", "abc", (1, 2), ValueError, ZeroDivisionError)]

#: Methods that would wait for input, write files, or change this process.
LEFT_OUT = {"write_lcov", "record_coverage", "keep_asked", "forked", "exiting", "panic", "of_host", "__init_subclass__", "__subclasshook__", "__class__"}


def callables() -> list[tuple[str, Any]]:
    """All functions and methods of the compiled module, bound to objects that are in use."""
    examples = Path(__file__).resolve().parents[3] / "examples"
    made = pl.Object(examples / "firewall.o")
    loaded = made.load()
    fw = loaded.program()
    run = fw.run(pl.packet("eth / ipv4 src=10.0.0.9 / tcp dport=23"))
    state = pl.load(Path(__file__).resolve().parents[3] / "crates/cli/tests/fixtures/state.o")
    batch = fw.run_many([run.data], columns=["data", "verdict"])
    objects: list[Any] = [made, loaded, fw, run, run.why(), batch, batch["data"], fw.coverage(), pl.chain([fw]),
                          pl.classic_filter("ret #-1"), pl.Network("[]"), pl.replay(examples / "traffic.pcap", fw), fw.maps, fw.variables]
    objects += list(fw.maps.values()) + list(state.maps.values()) + [target._raw for target in state.maps.values()]
    found: list[tuple[str, Any]] = [
        (name, value) for name, value in vars(_paceline).items() if callable(value) and name not in LEFT_OUT
    ]
    found += [(name, getattr(pl, name)) for name in ("load", "packet", "replay", "chain", "filter", "Packet", "Struct")]
    for target in objects:
        names = [name for name in dir(type(target)) if name not in LEFT_OUT and not name.startswith("__") or name in ("__getitem__", "__setitem__")]
        found += [(f"{type(target).__name__}.{name}", getattr(target, name)) for name in names if callable(getattr(target, name))]
    return found


def test_no_call_panics_or_crashes() -> None:
    chance = random.Random(21)
    calls = callables()
    assert len(calls) > 150
    for _ in range(6000):
        name, call = chance.choice(calls)
        arguments = [chance.choice(ODD) for _ in range(chance.randint(0, 3))]
        options = {}
        try:
            names = [p.name for p in inspect.signature(call).parameters.values() if p.kind is p.KEYWORD_ONLY]
        except (ValueError, TypeError):
            names = []
        for option in names:
            if chance.random() < 0.3:
                options[option] = chance.choice(ODD)
        try:
            call(*arguments, **options)
        except pl.InternalError as error:
            pytest.fail(f"{name}(*{arguments!r:.200}, **{options!r:.200}) panics: {error}")
        except Exception:
            pass
    gc.collect()


def test_classes_cannot_be_made_or_changed_by_hand() -> None:
    for cls in (pl.Program, pl.Run, pl.Collection, pl.Batch, pl.Explanation, pl.Runner, pl.Chain, pl.Filter, pl.Replay):
        with pytest.raises(TypeError):
            cls()
        with pytest.raises((TypeError, AttributeError)):
            cls.__new__(cls)
    with pytest.raises(TypeError):
        type("Mine", (pl.Program,), {})
    with pytest.raises(AttributeError):
        pl.load(Path(__file__).resolve().parents[3] / "examples/counter.o").name = "x"  # type: ignore[misc]


def test_broken_objects_and_captures_are_refused(examples: Path) -> None:
    chance = random.Random(7)
    for name, use in (
        ("firewall.o", lambda data: pl.Object(data).load().program().run(b"\0" * 60)),
        ("traffic.pcap", lambda data: list(pl.replay(data, pl.classic_filter("ret #-1")))),
        ("traffic.pcapng", lambda data: list(pl.replay(data, pl.classic_filter("ret #-1")))),
    ):
        whole = (examples / name).read_bytes()
        for _ in range(150):
            broken = bytearray(whole)
            for _ in range(chance.randint(1, 8)):
                broken[chance.randrange(len(broken))] = chance.randrange(256)
            try:
                use(bytes(broken[: chance.randrange(len(broken))] if chance.random() < 0.3 else broken))
            except pl.InternalError:
                raise
            except (pl.PacelineError, LookupError):
                pass


def test_a_subinterpreter_gets_an_import_error() -> None:
    code = """
import sys
try:
    import _interpreters as sub
except ImportError:
    try:
        import _xxsubinterpreters as sub
    except ImportError:
        sys.exit(0)
import paceline
failed = None
try:
    failed = sub.run_string(sub.create(), "import paceline")
except Exception as error:
    failed = error
assert failed is None or "ImportError" in str(failed) or "Import" in str(getattr(failed, "type", "")), failed
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode in (0,)
