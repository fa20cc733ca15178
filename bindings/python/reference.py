"""Makes the reference of the package's API: a page of HTML for each module, by pdoc. Fails if a public class or function is not documented.

    python reference.py FOLDER

In an environment with the package and pdoc.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pdoc
from pdoc.doc import Class, Doc, Module, Variable

MODULES = ["paceline", "paceline.strategies", "paceline.pytest_plugin"]


def undocumented(of: Doc[object]) -> Iterator[str]:
    """Names of a module or class, and of its classes, that have no words of their own."""
    assert isinstance(of, (Module, Class))
    for member in of.own_members:
        # What pytest calls is told of by pytest; of constants and attributes pdoc knows no words of the stubs.
        is_told = member.name.startswith(("_", "pytest_")) or isinstance(member, Variable)
        if not is_told and not member.docstring:
            yield member.fullname
        if isinstance(member, Class):
            yield from undocumented(member)


def main(folder: Path) -> int:
    # Of types in stubs, whose modules pdoc does not import.
    warnings.simplefilter("ignore", UserWarning)
    modules = [Module.from_name(name) for name in MODULES]
    pdoc.render.configure(docformat="markdown", show_source=False)
    pdoc.pdoc(*MODULES, output_directory=folder)
    pages = {name: (folder / (name.replace(".", "/") + ".html")).read_text() for name in MODULES}
    names = [member.fullname for module in modules for member in module.members.values() if not member.name.startswith("_")]
    wrong = [f"{name}: no documentation" for module in modules for name in undocumented(module)]
    all_pages = "".join(pages.values())
    wrong += [f"{name}: not in the reference" for name in names if f'id="{name.split(".")[-1]}"' not in all_pages]
    print(*wrong, f"{len(names)} names in {len(pages)} modules", sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
