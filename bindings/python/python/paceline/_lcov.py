"""Reports of coverage in LCOV's format, merged: those of the workers of pytest-xdist."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Optional


class _File:
    """The counts of a source file."""

    def __init__(self) -> None:
        self.functions: dict[str, str] = {}
        self.calls: dict[str, int] = defaultdict(int)
        # `None` is a branch whose line never ran.
        self.branches: dict[tuple[str, str, str], Optional[int]] = {}
        self.lines: dict[int, int] = defaultdict(int)

    def add(self, kind: str, rest: str) -> None:
        """Adds a line of a report."""
        if kind == "FN":
            line, name = rest.split(",", 1)
            self.functions[name] = line
        elif kind == "FNDA":
            count, name = rest.split(",", 1)
            self.calls[name] += int(count)
        elif kind == "BRDA":
            line, block, branch, taken = rest.split(",")
            before = self.branches.get((line, block, branch))
            self.branches[line, block, branch] = before if taken == "-" else (before or 0) + int(taken)
        elif kind == "DA":
            line, count = rest.split(",")[:2]
            self.lines[int(line)] += int(count)

    def write(self, path: str) -> list[str]:
        """The lines of a report."""
        text = ["TN:", f"SF:{path}"]
        text += [f"FN:{line},{name}" for name, line in self.functions.items()]
        text += [f"FNDA:{count},{name}" for name, count in self.calls.items()]
        text += [f"FNF:{len(self.functions)}", f"FNH:{sum(count > 0 for count in self.calls.values())}"]
        text += [f"BRDA:{','.join(at)},{'-' if taken is None else taken}" for at, taken in self.branches.items()]
        text += [f"BRF:{len(self.branches)}", f"BRH:{sum(bool(taken) for taken in self.branches.values())}"]
        text += [f"DA:{line},{count}" for line, count in sorted(self.lines.items())]
        text += [f"LF:{len(self.lines)}", f"LH:{sum(count > 0 for count in self.lines.values())}", "end_of_record"]
        return text


def _read(texts: Iterable[str]) -> dict[str, _File]:
    files: dict[str, _File] = defaultdict(_File)
    for text in texts:
        path = ""
        for line in text.splitlines():
            kind, _, rest = line.partition(":")
            if kind == "SF":
                path = rest
            elif path:
                files[path].add(kind, rest)
    return files


def merge(texts: Iterable[str]) -> str:
    """One report of several."""
    return "".join(line + "\n" for path, file in _read(texts).items() for line in file.write(path))


def totals(text: str) -> dict[str, tuple[int, int]]:
    """Numbers that ran and numbers there are, of lines, functions and branches."""
    files = _read([text]).values()
    return {
        "lines": (sum(n > 0 for f in files for n in f.lines.values()), sum(len(f.lines) for f in files)),
        "functions": (sum(n > 0 for f in files for n in f.calls.values()), sum(len(f.functions) for f in files)),
        "branches": (sum(bool(n) for f in files for n in f.branches.values()), sum(len(f.branches) for f in files)),
    }
