"""Packets of an archive by the processes of Dask: python with_dask.py EXPRESSION CAPTURE..."""

from __future__ import annotations

import sys

import dask
import pandas as pd
import pyarrow as pa
from dask.distributed import Client, LocalCluster

import paceline as pl


@dask.delayed
def sizes(part: pl.Split, expression: str) -> pd.Series:
    """Bytes by capture in a part, read where this task runs. Dask repeats it elsewhere if its process is lost."""
    table = pa.table(pl.scan(part, expression, columns=["capture", "captured_length"], workers=1))
    return table.to_pandas().astype({"capture": str}).groupby("capture")["captured_length"].sum()


@dask.delayed
def total(parts: list[pd.Series]) -> pd.Series:
    return pd.concat(parts).groupby(level=0).sum()


def archive(expression: str, captures: list[str], parts: int = 8) -> dask.delayed.Delayed:
    """Bytes of the packets that match, by capture."""
    return total([sizes(part, expression) for capture in captures for part in pl.splits(capture, parts)])


if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1) as cluster, Client(cluster):
        print(archive(sys.argv[1], sys.argv[2:]).compute())
