"""The bar below the log lines while a net is trained on a terminal: loss, rate, speed and time left."""

from time import monotonic
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ..observer import Observer
from .logs import StderrHandler

REDRAW_SECONDS = 0.1


class ProgressBar(Observer):
    """A bar over the iterations; while it is up, log lines are printed above it."""

    def __init__(self, handler: StderrHandler, start: int, stop: int, console: Console | None = None):
        self._handler = handler
        self._console = console or Console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[speed]}"),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
        )
        self._task = self._bar.add_task("", total=stop, completed=start, speed="")
        self._last_iteration, self._last_time = start, monotonic()

    def __enter__(self) -> "ProgressBar":
        self._bar.start()
        self._handler.write = self._print_above
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._handler.write = self._handler.write_line
        self._bar.stop()

    def on_iteration(self, iteration: int, loss: float, lr: float) -> None:
        """Show that ``iteration`` is done; most calls return at once."""
        now = monotonic()
        passed = now - self._last_time
        if passed < REDRAW_SECONDS:
            return
        speed = (iteration - self._last_iteration) / passed
        self._last_iteration, self._last_time = iteration, now
        self._bar.update(
            self._task,
            completed=iteration,
            description=f"loss {loss:g}  lr {lr:g}",
            speed=f"{speed:.4g} it/s",
        )

    def _print_above(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, emoji=False, soft_wrap=True)
