"""Runs the command line inside the test's process (quick) or in one of its own (as a user does)."""

import io
import subprocess
import sys
from collections.abc import Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from recaffe.framework.cli.main import main

LOG_LINE = r"[IWE]\d{8} \d\d:\d\d:\d\d\.\d{6} +\d+ \w+\.py:\d+\] "


@dataclass
class Result:
    """What a command left: its exit status and what it wrote."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """The log lines without their prefixes."""
        return [line.split("] ", 1)[1] for line in self.err.splitlines() if "] " in line]


def run_cli(arguments: Sequence[str], folder: Path) -> Result:
    """Run ``recaffe ARGUMENTS`` in ``folder``, inside this process."""
    out, err = io.StringIO(), io.StringIO()
    path = list(sys.path)
    with chdir(folder), redirect_stdout(out), redirect_stderr(err):
        try:
            status = main(arguments)
        finally:
            sys.path[:] = path
    return Result(status, out.getvalue(), err.getvalue())


def run_process(arguments: Sequence[str], folder: Path) -> Result:
    """Run ``python -m recaffe ARGUMENTS`` in ``folder``, in a process of its own."""
    command = [sys.executable, "-m", "recaffe", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    return Result(done.returncode, done.stdout, done.stderr)
