"""The recipes of docs/ARCHIVES.md on local clusters of two processes, one of which is lost in the middle."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import paceline as pl

from .conftest import ROOT, library
from .test_scan import long

RECIPES = ROOT / "bindings/python/examples/archives"
EXPRESSION = "tcp"


def recipe(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    # Processes that a recipe starts import it by its name.
    monkeypatch.syspath_prepend(str(RECIPES))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(RECIPES), str(Path(pl.__file__).parents[1])]))
    spec = importlib.util.find_spec(name)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def captures(examples: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("archive")
    paths = [folder / "one.pcap", folder / "two.pcap"]
    for path in paths:
        path.write_bytes(long(examples, 40))
    return [str(path) for path in paths]


def expected(captures: list[str]) -> dict[str, int]:
    pa = library("pyarrow")
    table = pa.table(pl.scan(captures, EXPRESSION, columns=["capture", "captured_length"]))
    sums: dict[str, int] = {}
    for name, length in zip(table["capture"].to_pylist(), table["captured_length"].to_pylist()):
        sums[name] = sums.get(name, 0) + length
    assert len(sums) == len(captures)
    return sums


def lose_a_worker(monkeypatch: pytest.MonkeyPatch, mark: Path) -> None:
    """From here on the first process that begins to scan is lost: `sitecustomize` of new processes wraps `scan`."""
    folder = mark.parent / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        "import os, signal\n"
        "import paceline as pl\n"
        "scan, mark, parent = pl.scan, os.environ['PACELINE_LOST'], int(os.environ['PACELINE_PARENT'])\n"
        "def lossy(*args, **options):\n"
        "    found = scan(*args, **options)\n"
        "    if os.getpid() != parent:\n"
        "        next(found)\n"
        "        try:\n"
        "            os.close(os.open(mark, os.O_CREAT | os.O_EXCL))\n"
        "        except FileExistsError:\n"
        "            return scan(*args, **options)\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return found\n"
        "pl.scan = lossy\n"
    )
    monkeypatch.setenv("PACELINE_LOST", str(mark))
    monkeypatch.setenv("PACELINE_PARENT", str(os.getpid()))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), os.environ["PYTHONPATH"]]))


def test_ray(captures: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ray = library("ray")
    __import__("ray.data")
    module = recipe("with_ray", monkeypatch)
    lose_a_worker(monkeypatch, tmp_path / "lost")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        found = module.archive(EXPRESSION, captures, 6)
        table = library("pyarrow").concat_tables(ray.get(found.to_arrow_refs()))
    finally:
        ray.shutdown()
    assert (tmp_path / "lost").exists()
    whole = library("pyarrow").table(pl.scan(captures, EXPRESSION, columns=["capture", "time", "captured_length", "data"]))
    assert [row for row in table.to_pylist()] == whole.to_pylist()


def test_dask(captures: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    distributed = library("distributed")
    module = recipe("with_dask", monkeypatch)
    lose_a_worker(monkeypatch, tmp_path / "lost")
    options: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster):
        found = module.archive(EXPRESSION, captures, 6).compute()
    assert (tmp_path / "lost").exists()
    assert found.to_dict() == expected(captures)


def test_duckdb(captures: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    duckdb = library("duckdb")
    module = recipe("with_duckdb", monkeypatch)
    lose_a_worker(monkeypatch, tmp_path / "lost")
    files = module.archive(EXPRESSION, tmp_path, captures, 6)
    assert (tmp_path / "lost").exists() and len(files) == 12
    query = "select capture, sum(captured_length) from read_parquet($1) group by capture"
    assert dict(duckdb.sql(query, params=[files]).fetchall()) == expected(captures)
