"""Archives: many captures, on disk and in object stores, and parts of them for other processes."""

from __future__ import annotations

import glob
import io
import os
import threading
from collections.abc import Iterable
from typing import Any, Callable, Optional, Union

from . import _paceline
from ._paceline import Filter, Runner, Scan, Split

_Path = Union[str, "os.PathLike[str]"]
_Capture = Union[_Path, bytes, bytearray, memoryview, Split, Any]


class _Remote:
    """A file of fsspec, whose bytes several threads read."""

    def __init__(self, url: str) -> None:
        try:
            import fsspec
        except ImportError as error:
            raise ImportError(f"{url}: URLs need the package fsspec") from error
        self._fs, self._path = fsspec.core.url_to_fs(url)
        self.size = int(self._fs.size(self._path))

    def read_at(self, offset: int, size: int) -> bytes:
        end = min(offset + size, self.size)
        return bytes(self._fs.cat_file(self._path, start=offset, end=end)) if offset < end else b""


class _File:
    """A binary file, whose bytes several threads read."""

    def __init__(self, file: Any) -> None:
        self._file, self._lock = file, threading.Lock()
        self.size = int(file.seek(0, io.SEEK_END))

    def read_at(self, offset: int, size: int) -> bytes:
        with self._lock:
            self._file.seek(offset)
            return bytes(self._file.read(size))


def _is_url(text: str) -> bool:
    return "://" in text


def _source(name: str) -> Any:
    return _Remote(name) if _is_url(name) else name


def _expanded(text: str) -> list[str]:
    """A path or URL, or those that a pattern matches, in order."""
    if not glob.has_magic(text) or os.path.exists(text):
        return [text]
    if _is_url(text):
        import fsspec

        fs, path = fsspec.core.url_to_fs(text)
        found = [fs.unstrip_protocol(each) for each in sorted(fs.glob(path))]
    else:
        found = sorted(glob.glob(text, recursive=True))
    if not found:
        raise FileNotFoundError(f"no capture matches {text}")
    return found


def _given(capture: _Capture) -> list[tuple[str, Any, Optional[Split]]]:
    """Name, source and part of captures."""
    if isinstance(capture, Split):
        return [(capture.capture, _source(capture.capture), capture)]
    if isinstance(capture, (str, os.PathLike)):
        return [(name, _source(name), None) for name in _expanded(os.fspath(capture))]
    if isinstance(capture, memoryview):
        capture = capture.tobytes()
    if isinstance(capture, (bytes, bytearray)):
        return [("bytes", capture, None)]
    if hasattr(capture, "seek") and hasattr(capture, "read"):
        return [(str(getattr(capture, "name", "file")), _File(capture), None)]
    raise TypeError(f"a capture is a path, a URL, bytes, a binary file or a Split, not {type(capture).__name__}")


def _is_one(captures: Any) -> bool:
    return isinstance(captures, (str, os.PathLike, bytes, bytearray, memoryview, Split)) or hasattr(captures, "read")


def scan(
    captures: Union[_Capture, Iterable[_Capture]],
    filter: Union[str, Filter, None] = None,
    *,
    program: Union[Runner, Callable[[], Runner], None] = None,
    merge: Union[str, dict[str, str], None] = None,
    columns: Optional[list[str]] = None,
    workers: Optional[int] = None,
    batch_size: int = 8192,
    engine: Optional[str] = None,
) -> Scan:
    """Reads captures on several threads, and gives the packets that match as record batches, in the order of the captures.

    `captures` is a path, a pattern of paths, a URL of fsspec, bytes, a binary file or a `Split`, or several of them; pcap or pcapng,
    perhaps compressed by gzip or zstd. `filter` is an expression of tcpdump, or a `Filter`. The packets that match run through
    `program`, if there is one: a program or chain, or for several workers a function that loads a program, called for each worker. Their maps
    become one by `merge`, a rule for each map, with `"*"` for all others, or one rule for all: `sum` adds counters, `union` is for
    sets of keys, `fixed` for maps that programs only read. The maps are those of `Scan.program` at the end.

    `columns` are some of `capture`, `offset`, `time`, `interface`, `original_length`, `captured_length`, `length`, `verdict`, `code`,
    `input` and `data`. `workers` is the number of threads: one for each CPU by default, and one with a program. Bytes that are damaged
    are skipped with a `CaptureWarning`, and listed in `Scan.lost`.

    Raises `OSError`, `CaptureError`, `FilterError` and `MapError`.
    """
    several = captures if isinstance(captures, Iterable) and not _is_one(captures) else [captures]
    given = [each for capture in several for each in _given(capture)]
    if not given:
        raise ValueError("no captures")
    if program is None or isinstance(program, Runner):
        if program is not None and workers not in (None, 1):
            raise ValueError("several workers need maps of their own: program is a function that loads one, or workers=1")
        programs = [] if program is None else [program]
    else:
        programs = [program() for _ in range(workers or 1)]
    return _paceline._scan(given, filter, programs, merge, columns, workers, batch_size, engine)


def splits(capture: _Path, parts: int, *, walk: bool = False) -> list[Split]:
    """Cuts a capture into about so many parts, which other processes and machines `scan`: plain data, which can be pickled.

    The parts have together the packets and losses of the whole capture. Boundaries are found from the middle of the file; one that was
    taken for a record by mistake, and interfaces that are described between packets, make the scan of a part raise `CaptureError`. With
    `walk` all records are read for the cut, and this cannot happen. A compressed capture is one part.
    """
    name = os.fspath(capture)
    return _paceline._splits(name, _source(name), parts, walk)
