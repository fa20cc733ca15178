"""Packets of an archive by the processes of Ray: python with_ray.py EXPRESSION CAPTURE..."""

from __future__ import annotations

import sys
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import ray

import paceline as pl


def packets(row: dict[str, Any], expression: str) -> pa.Table:
    """The packets of a part, read where this task runs. Ray repeats it elsewhere if its process is lost."""
    return pa.table(pl.scan(row["part"], expression, columns=["capture", "time", "captured_length", "data"], workers=1))


def archive(expression: str, captures: list[str], parts: int = 8) -> ray.data.Dataset:
    """The packets that match, as a dataset."""
    found = [{"part": part} for capture in captures for part in pl.splits(capture, parts)]
    tasks = [ray.remote(max_retries=5)(packets).remote(row, expression) for row in found]
    return ray.data.from_arrow_refs(tasks)


if __name__ == "__main__":
    ray.init(num_cpus=2, log_to_driver=False)
    found = archive(sys.argv[1], sys.argv[2:])
    print(found.count(), "packets,", found.sum("captured_length"), "bytes")
