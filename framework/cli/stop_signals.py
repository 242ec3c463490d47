"""SIGINT and SIGHUP while a net is trained: stop after the iteration, snapshot, or nothing."""

import signal
from types import FrameType, TracebackType
from typing import Any

EFFECTS = ("stop", "snapshot", "none")


class SignalRequests:
    """Keeps what SIGINT and SIGHUP ask for until the solver takes it, after each iteration.

    A SIGINT while an earlier one still waits, or after one that stops, interrupts at once.
    """

    def __init__(self, sigint_effect: str, sighup_effect: str):
        self._effects: dict[int, str] = {signal.SIGINT: sigint_effect}
        if hasattr(signal, "SIGHUP"):
            self._effects[signal.SIGHUP] = sighup_effect
        self._pending: list[str] = []
        self._stopping = False
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> "SignalRequests":
        for number in self._effects:
            self._previous[number] = signal.signal(number, self._receive)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def take(self) -> str | None:
        """The oldest request that was not taken yet: stop, snapshot, or None."""
        return self._pending.pop(0) if self._pending else None

    def _receive(self, number: int, frame: FrameType | None) -> None:
        effect = self._effects[number]
        if effect == "none":
            return
        if number == signal.SIGINT and (self._pending or self._stopping):
            raise KeyboardInterrupt
        self._stopping |= effect == "stop"
        self._pending.append(effect)
