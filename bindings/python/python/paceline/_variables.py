"""Global variables of objects."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._paceline import RawVariables


class Variables(MutableMapping[str, Any]):
    """The global variables of an object, by name. Constants are set by `load(variables=...)`, before they are verified.

    Setting one writes its whole section: no other thread may run programs meanwhile that change variables beside it.
    """

    __slots__ = ("_raw",)

    def __init__(self, raw: RawVariables) -> None:
        self._raw = raw

    def __getitem__(self, name: str) -> Any:
        return self._raw.get(name)

    def __setitem__(self, name: str, value: Any) -> None:
        self._raw.set(name, value)

    def __delitem__(self, name: str) -> None:
        raise TypeError("a variable cannot be removed")

    def __iter__(self) -> Iterator[str]:
        return iter(self._raw.names())

    def __len__(self) -> int:
        return len(self._raw.names())

    def __repr__(self) -> str:
        return "Variables(" + ", ".join(f"{name}={value!r}" for name, value in self.items()) + ")"
