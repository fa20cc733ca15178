"""The examples of docs/PYTHON.md and docs/ARCHIVES.md."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from .conftest import EXAMPLES, ROOT, missing

PAGE = ROOT / "docs/PYTHON.md"


@pytest.mark.parametrize(("name", "least"), [("PYTHON.md", 30), ("ARCHIVES.md", 12)])
def test_the_examples_print_what_the_page_says(monkeypatch: pytest.MonkeyPatch, name: str, least: int) -> None:
    for library in ("scapy", "duckdb", "polars", "pyarrow"):
        try:
            __import__(library)
        except ImportError:
            missing(f"docs/{name}", f"{library} is not installed")
    monkeypatch.chdir(EXAMPLES)
    page = ROOT / "docs" / name
    # The fences of Markdown are no output.
    text = page.read_text().replace("```", "")
    test = doctest.DocTestParser().get_doctest(text, {}, name, str(page), 0)
    assert len(test.examples) > least
    report: list[str] = []
    results = doctest.DocTestRunner().run(test, out=report.append)
    assert results.failed == 0, "".join(report)


def test_the_tests_of_the_page_pass(pytester: pytest.Pytester) -> None:
    blocks = PAGE.read_text().split("```python\n")[1:]
    (tests,) = [block.split("```")[0] for block in blocks if "def test_" in block]
    pytester.makeini(f"[pytest]\npaceline_objects = {EXAMPLES}\n")
    pytester.makepyfile(tests)
    pytester.runpytest_subprocess().assert_outcomes(passed=4)


def test_every_name_of_the_package_is_on_the_page() -> None:
    import paceline as pl

    text = PAGE.read_text() + (ROOT / "docs/ARCHIVES.md").read_text()
    left_out = {"__version__", "ABORTED", "ANY", "PASS", "REDIRECT", "TX", "Batch", "Chain", "Collection", "Column", "Coverage",
                "Enumerator", "Event", "Explanation", "Fact", "Filter", "Map", "Maps", "Redirect", "Replay", "Run", "Runner", "Variables", "Verdict"}
    assert [name for name in pl.__all__ if name not in left_out and name not in text] == []
    assert all(hasattr(pl, name) for name in pl.__all__) and Path(pl.__file__).with_name("py.typed").exists()
