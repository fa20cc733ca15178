"""Packets of an archive for DuckDB, read by several processes: python with_duckdb.py EXPRESSION FOLDER CAPTURE..."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import paceline as pl


def file_of(part: pl.Split, expression: str, folder: Path) -> Path:
    """The file of a part: another part or expression has another one."""
    key = repr((expression, part)).encode()
    return folder / f"{hashlib.sha256(key).hexdigest()[:16]}.parquet"


def write(part: pl.Split, expression: str, folder: Path) -> None:
    """Writes the packets of a part. The file is there when it is complete."""
    path = file_of(part, expression, folder)
    unfinished = path.with_suffix(f".{os.getpid()}")
    scan = pl.scan(part, expression, columns=["capture", "time", "captured_length", "data"], workers=1)
    pq.write_table(pa.table(scan), unfinished)
    unfinished.rename(path)


def missing(parts: list[pl.Split], expression: str, folder: Path) -> Iterator[pl.Split]:
    return (part for part in parts if not file_of(part, expression, folder).exists())


def archive(expression: str, folder: Path, captures: list[str], parts: int = 8, processes: int = 2) -> list[str]:
    """Writes the packets that match, and returns the files. What is there already, or was written before a process was lost, stays."""
    found = [part for capture in captures for part in pl.splits(capture, parts)]
    for _ in range(5):
        todo = list(missing(found, expression, folder))
        if not todo:
            break
        with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
            try:
                for done in [pool.submit(write, part, expression, folder) for part in todo]:
                    done.result()
            except BrokenProcessPool:
                pass
    if left := list(missing(found, expression, folder)):
        raise RuntimeError(f"processes are lost again and again; {left[0]!r} is not read")
    return [str(file_of(part, expression, folder)) for part in found]


if __name__ == "__main__":
    expression, folder, *captures = sys.argv[1:]
    Path(folder).mkdir(exist_ok=True)
    files = archive(expression, Path(folder), captures)
    duckdb.sql("select capture, count(*) as packets, sum(captured_length) as bytes from read_parquet($1) group by capture", params=[files]).show()
