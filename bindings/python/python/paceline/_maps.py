"""Maps as Python's own collections."""

from __future__ import annotations

from collections.abc import Collection, ItemsView, Iterable, Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Optional, Union

if TYPE_CHECKING:
    from ._paceline import Batch, Program, RawMap

#: For `Map.set`: create or change, create only, change only (`BPF_ANY`, `BPF_NOEXIST`, `BPF_EXIST`).
ANY, NOEXIST, EXIST = 0, 1, 2


class _Named:
    """A map with its properties."""

    __slots__ = ("_raw",)

    def __init__(self, raw: RawMap) -> None:
        self._raw = raw

    @property
    def name(self) -> str:
        """Name in the object."""
        return self._raw.name

    @property
    def kind(self) -> str:
        """Kind, such as `hash`."""
        return self._raw.kind

    @property
    def max_entries(self) -> int:
        """Elements that it can have; bytes of a ring buffer."""
        return self._raw.max_entries

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {self.kind}, at most {self.max_entries} entries>"

    def __eq__(self, other: object) -> bool:
        """Whether it is the same map."""
        return isinstance(other, _Named) and self._raw.id == other._raw.id

    def __hash__(self) -> int:
        return hash(self._raw.id)


class _Items(ItemsView[Any, Any]):
    """Elements that are read in one call."""

    _mapping: Map

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return iter(self._mapping._raw.items())


class Map(_Named, MutableMapping[Any, Any]):
    """A map by the types of its object.

    Keys and values are given as ints, texts (addresses, enumerators), bytes, tuples, and dicts or dataclasses for structures;
    omitted members are zero. They are read as the table in `docs/PYTHON.md` says: structures as `Struct`. A value of a per-CPU
    map is a tuple with a value for each CPU.

    Programs and other threads may change a map at any time. An iteration shows the elements that were there when it began, and
    each call alone is atomic. It is equal to a mapping with the same elements.
    """

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return Mapping.__eq__(self, other)

    def __getitem__(self, key: Any) -> Any:
        return self._raw.get(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._raw.set(key, value)

    def __delitem__(self, key: Any) -> None:
        self._raw.delete(key)

    def __contains__(self, key: object) -> bool:
        return self._raw.contains(key)

    def __len__(self) -> int:
        return self._raw.len()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._raw.keys())

    def items(self) -> ItemsView[Any, Any]:
        return _Items(self)

    def set(self, key: Any, value: Any, flags: int = ANY) -> None:
        """Sets an element with flags of the kernel: `paceline.NOEXIST`, `paceline.EXIST`."""
        self._raw.set(key, value, flags)

    def update(  # type: ignore[override]
        self, elements: Union[Mapping[Any, Any], Iterable[tuple[Any, Any]]] = (), /
    ) -> None:
        """Sets many elements: of a mapping, pairs, or an Arrow table with the columns `key` and `value`.

        All are checked against the types before the first is set.
        """
        if hasattr(elements, "__arrow_c_stream__") or hasattr(elements, "__arrow_c_array__"):
            self._raw.update_arrow(elements)
        else:
            self._raw.update_many(elements)

    def to_arrow(self) -> Batch:
        """The elements there are now, as an Arrow table with the columns `key` and `value`."""
        return self._raw.to_arrow()

    def lookup_batch(self, keys: Iterable[Any]) -> list[Optional[Any]]:
        """The values of many keys, `None` for those that are not there."""
        return self._raw.lookup_many(keys)

    def clear(self) -> None:
        """Removes all elements; those of an array become zero."""
        self._raw.clear()

    def freeze(self) -> None:
        """Makes the map read-only for user space, programs can still write."""
        self._raw.freeze()

    @property
    def is_frozen(self) -> bool:
        """Whether user space can no longer write."""
        return self._raw.is_frozen

    @property
    def bytes(self) -> Map:
        """The same map with keys and values as `bytes`."""
        return Map(self._raw.plain())


class Queue(_Named, Collection[Any]):
    """A queue or stack."""

    __slots__ = ()

    def push(self, value: Any) -> None:
        """Adds a value."""
        self._raw.push(value)

    def pop(self) -> Any:
        """Removes and returns the next value; `IndexError` if there is none."""
        return self._raw.pop()

    def peek(self) -> Any:
        """The next value, which stays; `IndexError` if there is none."""
        return self._raw.peek()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._raw.values())

    def __len__(self) -> int:
        return len(self._raw.values())

    def __contains__(self, value: object) -> bool:
        return value in self._raw.values()

    @property
    def bytes(self) -> Queue:
        """The same map with values as `bytes`."""
        return Queue(self._raw.plain())


class Bloom(_Named):
    """A Bloom filter."""

    __slots__ = ()

    def add(self, value: Any) -> None:
        """Adds a value."""
        self._raw.push(value)

    def __contains__(self, value: object) -> bool:
        return self._raw.may_contain(value)


class RingBuffer(_Named):
    """A ring buffer. Iteration takes the records that programs have submitted so far."""

    __slots__ = ()

    def read(self) -> list[bytes]:
        """Takes the records that programs submitted since the last call."""
        return self._raw.records()

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.read())


class MapOfMaps(_Named):
    """A map whose values are maps, which are read by `[key]` and set to another map or to elements."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        return wrap(self._raw.inner(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(value, _Named):
            self._raw.set_inner(key, value._raw)
            return
        inner = self._raw.make_inner()
        inner.update_many(value)
        self._raw.set_inner(key, inner)

    def __delitem__(self, key: Any) -> None:
        self._raw.delete(key)

    def __contains__(self, key: object) -> bool:
        return self._raw.contains(key)

    def __iter__(self) -> Iterator[Any]:
        return (key for key in self._raw.keys() if key in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class ProgramArray(_Named):
    """A table of tail calls: programs by index."""

    __slots__ = ()

    def __setitem__(self, index: int, program: Program) -> None:
        program._install(self._raw, index)

    def __delitem__(self, index: int) -> None:
        if not self._raw.uninstall(index):
            raise KeyError(index)

    def __getitem__(self, index: int) -> str:
        """The name of the program in an entry."""
        name = self._raw.installed(index)
        if name is None:
            raise KeyError(index)
        return name

    def __contains__(self, index: object) -> bool:
        return isinstance(index, int) and self._raw.installed(index) is not None

    def __len__(self) -> int:
        return sum(1 for index in range(self.max_entries) if index in self)

    def __iter__(self) -> Iterator[int]:
        return (index for index in range(self.max_entries) if index in self)


AnyMap = Union[Map, Queue, Bloom, RingBuffer, MapOfMaps, ProgramArray]

_FORMS: dict[str, type[Any]] = {
    "elements": Map,
    "queue": Queue,
    "bloom": Bloom,
    "ring": RingBuffer,
    "maps": MapOfMaps,
    "programs": ProgramArray,
}


def wrap(raw: RawMap) -> Any:
    """A map as the class of its kind."""
    return _FORMS[raw.form](raw)


class Maps(Mapping[str, Any]):
    """The maps of an object by name."""

    __slots__ = ("_maps",)

    def __init__(self, maps: dict[str, RawMap]) -> None:
        self._maps = {name: wrap(raw) for name, raw in maps.items()}

    def __getitem__(self, name: str) -> Any:
        try:
            return self._maps[name]
        except KeyError:
            raise KeyError(f"no map {name} (available: {', '.join(self._maps)})") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._maps)

    def __len__(self) -> int:
        return len(self._maps)

    def __repr__(self) -> str:
        return "Maps(" + ", ".join(self._maps) + ")"
