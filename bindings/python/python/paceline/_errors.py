"""Exceptions. A file that cannot be opened is an `OSError`, as everywhere in Python."""

from __future__ import annotations

from typing import Any, Optional


class PacelineError(Exception):
    """An operation of Paceline failed.

    `file` is the file that is at fault, `place` the place in it (a line, a column, an instruction, a packet), and `cause`
    the cause alone, without both; each is `None` where there is none.
    """

    file: Optional[str]
    place: Optional[str]
    cause: Optional[str]

    def __init__(
        self,
        message: str,
        *,
        file: Optional[str] = None,
        place: Optional[str] = None,
        cause: Optional[str] = None,
    ) -> None:
        super().__init__(message)
        self.file = file
        self.place = place
        self.cause = cause


class ObjectError(PacelineError):
    """A file is no object, or its maps cannot be made."""


class ProgramError(PacelineError):
    """There is no such program, or no engine can run it."""


class VerifierError(ProgramError):
    """The verifier refuses a program. The message is the refusal beside the source."""

    data: dict[str, Any]

    def __init__(self, message: str, *, data: Optional[dict[str, Any]] = None, **where: Optional[str]) -> None:
        super().__init__(message, **where)
        self.data = data or {}

    @property
    def text(self) -> str:
        """The rendered refusal, as `paceline verify` prints it."""
        return str(self.args[0])

    @property
    def program(self) -> str:
        """Name of the program."""
        return str(self.data["name"])

    @property
    def line(self) -> Optional[int]:
        """Source line of the guilty instruction, if the object has it."""
        line: Optional[int] = self.data.get("line")
        return line

    @property
    def hint(self) -> Optional[str]:
        """The usual fix, if there is one."""
        hint = self.data.get("hint")
        return str(hint["text"]) if hint else None


class MapError(PacelineError):
    """A map refuses an operation. `errno` is the kernel's number for it."""

    errno: Optional[int]

    def __init__(self, message: str, *, data: Optional[dict[str, Any]] = None, **where: Optional[str]) -> None:
        super().__init__(message, **where)
        self.errno = data["errno"] if data else None


class MapValueError(PacelineError, ValueError):
    """A key or value does not fit the type of a map."""


class CaptureError(PacelineError):
    """A capture cannot be read."""


class CaptureWarning(UserWarning):
    """Bytes of a capture are damaged and were skipped."""


class FilterError(PacelineError):
    """An expression or classic program is no filter."""


class PacketError(PacelineError, ValueError):
    """A text describes no packet, or a packet is longer than a frame."""


class ChainError(PacelineError):
    """Programs make no chain, or a change of a chain is refused."""


class NetworkError(PacelineError):
    """A text describes no network."""


class FaultError(PacelineError):
    """A program made an invalid access, which no verified program does."""


class InternalError(PacelineError):
    """A fault of Paceline itself: please report it."""
