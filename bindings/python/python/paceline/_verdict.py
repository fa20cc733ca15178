"""Verdicts."""

from __future__ import annotations

import enum


class Verdict(enum.IntEnum):
    """The fate of a packet, by the numbers of `enum xdp_action`."""

    ABORTED = 0
    DROP = 1
    PASS = 2
    TX = 3
    REDIRECT = 4

    def __str__(self) -> str:
        return self.name.lower()
