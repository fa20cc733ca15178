"""Fixtures: the example objects and captures of the repository."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"


@pytest.fixture(scope="session")
def examples() -> Path:
    return EXAMPLES


def missing(name: str, reason: str) -> None:
    """Skips a test that cannot run here, or fails it where all must run."""
    print(f"SKIP {name}: {reason}")
    if os.environ.get("PACELINE_REQUIRE_ALL") == "1":
        pytest.fail(f"{name}: {reason}")
    pytest.skip(reason)


def library(name: str) -> Any:
    """A library that a test needs."""
    try:
        return __import__(name)
    except ImportError:
        missing(name, f"{name} is not installed")
