"""Paired timing: each peer in a process of its own, blocks of iterations in turn, the ratio taken block by block.

Peers in one process slow each other (the waiting threads of two runtimes fight for the cores), and a ratio of
times taken minutes apart measures the machine's mood; pairs of neighbouring blocks do neither.
"""

import json
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass
class Comparison:
    """What one pairing showed; times are medians in milliseconds, spread is the middle half of the ratios."""

    ours_ms: float
    peer_ms: float
    ratio: float
    spread: tuple[float, float]
    ours_peak_mb: float
    peer_peak_mb: float

    def cells(self) -> tuple[str, ...]:
        """All of it as a table's row has it."""
        times = (self.ours_ms, self.peer_ms, self.ratio)
        peaks = (self.ours_peak_mb, self.peer_peak_mb)
        spread = "{:.2f} - {:.2f}".format(*self.spread)
        return *(f"{value:.2f}" for value in times), spread, *(f"{peak:.0f}" for peak in peaks)


class Worker:
    """A peer's process, which answers numbers of iterations as ``serve`` does."""

    def __init__(self, command: Sequence[str]):
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._answer()

    def run(self, iterations: int) -> dict[str, Any]:
        """Run so many iterations; gives their times and the process's peak memory."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{iterations}\n")
        self._process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{' '.join(self._process.args)} ended without an answer")  # type: ignore[arg-type]
        return json.loads(line)


def compare(net: str, mode: str, peer: str, rounds: int, block_ms: float = 300) -> Comparison:
    """Time recaffe and ``peer`` on ``net`` in ``rounds`` pairs of blocks of about ``block_ms`` each."""
    command = [sys.executable, "-m", "benchmarks.worker"]
    return compare_workers([Worker([*command, name, net, mode]) for name in ("recaffe", peer)], rounds, block_ms)


def compare_workers(workers: Sequence[Worker], rounds: int, block_ms: float = 300) -> Comparison:
    """Time recaffe's process and a peer's, and end them."""
    sizes = [max(1, round(block_ms / statistics.median(worker.run(3)["ms"]))) for worker in workers]
    pairs = []
    for number in range(rounds):
        order = (0, 1) if number % 2 == 0 else (1, 0)
        answers = {i: workers[i].run(sizes[i]) for i in order}
        pairs.append((answers[0], answers[1]))
    for worker in workers:
        worker.close()
    medians = [[statistics.median(answer["ms"]) for answer in pair] for pair in pairs]
    ratios = [ours / theirs for ours, theirs in medians]
    quartiles = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else [ratios[0]] * 3
    return Comparison(
        ours_ms=statistics.median(ours for ours, _ in medians),
        peer_ms=statistics.median(theirs for _, theirs in medians),
        ratio=statistics.median(ratios),
        spread=(quartiles[0], quartiles[2]),
        ours_peak_mb=pairs[-1][0]["peak_mb"],
        peer_peak_mb=pairs[-1][1]["peak_mb"],
    )
