"""Values of C types that Python has no type of its own for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Optional


def _frozen(value: Any) -> Any:
    """Lists are equal to the tuples that arrays are read as."""
    return tuple(_frozen(element) for element in value) if isinstance(value, (list, tuple)) else value


class Struct(Mapping[str, Any]):
    """A C structure or union as it was when it was read: members by name, as items and as attributes.

    It is equal to a mapping with the same members, and can be a key of a dict. To change a member of an element, write the
    element again: `rules[key] = rules[key]._replace(action=1)`.
    """

    __slots__ = ("_members", "_text")

    def __init__(self, members: Mapping[str, Any], text: Optional[str] = None) -> None:
        object.__setattr__(self, "_members", members)
        object.__setattr__(self, "_text", text)

    def __getitem__(self, name: str) -> Any:
        return self._members[name]

    def __getattr__(self, name: str) -> Any:
        if name in ("_members", "_text"):  # of an object that is not made yet, as `copy` asks
            raise AttributeError(name)
        try:
            return self._members[name]
        except KeyError:
            raise AttributeError(f"no member {name!r} (available: {', '.join(self._members)})") from None

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a Struct is a copy: write the element again, with _replace({name}=...)")

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        return len(self) == len(other) and all(
            name in other and _frozen(value) == _frozen(other[name]) for name, value in self._members.items()
        )

    def __hash__(self) -> int:
        return hash(tuple(self._members.items()))

    def __repr__(self) -> str:
        members = ", ".join(f"{name}={value!r}" for name, value in self._members.items())
        return f"Struct({members})" if self._text is None else f"<{self._text}: Struct({members})>"

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._members]

    def __reduce__(self) -> tuple[type[Struct], tuple[dict[str, Any], Optional[str]]]:
        return Struct, (dict(self._members), self._text)

    def _replace(self, **changes: Any) -> Struct:
        """A copy with other values of some members."""
        for name in changes:
            self.__getattr__(name)
        return Struct({**self._members, **changes})

    def _asdict(self) -> dict[str, Any]:
        """The members as a dict, those of nested structures too."""
        return {name: _plain(value) for name, value in self._members.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Struct):
        return value._asdict()
    return tuple(_plain(element) for element in value) if isinstance(value, tuple) else value


class Enumerator(int):
    """A value of a C enumeration: a number with the enumerator's name."""

    name: str

    def __new__(cls, value: int, name: str) -> Enumerator:
        enumerator = super().__new__(cls, value)
        enumerator.name = name
        return enumerator

    def __repr__(self) -> str:
        return f"<{self.name}: {int(self)}>"

    def __reduce__(self) -> tuple[type[Enumerator], tuple[int, str]]:
        return Enumerator, (int(self), self.name)


class WrittenInt(int):
    """An address or a number in network byte order: a number with the text that people write for it.

    `text` can be given where the number can.
    """

    text: str

    def __new__(cls, value: int, text: str) -> WrittenInt:
        written = super().__new__(cls, value)
        written.text = text
        return written

    def __repr__(self) -> str:
        return f"<{self.text}: {int(self)}>"

    __str__ = int.__repr__

    def __reduce__(self) -> tuple[type[WrittenInt], tuple[int, str]]:
        return WrittenInt, (int(self), self.text)


class WrittenTuple(tuple[int, ...]):
    """An address that is an array: its elements with the text that people write for it."""

    text: str

    def __new__(cls, elements: Iterable[int], text: str) -> WrittenTuple:
        written = super().__new__(cls, elements)
        written.text = text
        return written

    def __repr__(self) -> str:
        return f"<{self.text}: {tuple(self)!r}>"

    def __reduce__(self) -> tuple[type[WrittenTuple], tuple[tuple[int, ...], str]]:
        return WrittenTuple, (tuple(self), self.text)
