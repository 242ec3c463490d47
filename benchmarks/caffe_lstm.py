"""The LSTM layer against real Caffe's: forward and backward of one layer on noise, each in a process of its own.

    python -m benchmarks.caffe_lstm --caffe-python PATH

PATH is the Python interpreter that has pycaffe.
"""

import sys
import tempfile
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from .measure import Worker, compare_workers

SIZES = ((20, 16, 64, 64), (50, 32, 128, 256), (50, 32, 256, 512), (100, 64, 256, 256))
NET = """force_backward: true
layer {{ name: "in" type: "Input" top: "x" top: "cont"
  input_param {{ shape {{ dim: {T} dim: {N} dim: {D} }} shape {{ dim: {T} dim: {N} }} }} }}
layer {{ name: "lstm" type: "LSTM" bottom: "x" bottom: "cont" top: "y" propagate_down: true propagate_down: false
  recurrent_param {{ num_output: {H} weight_filler {{ type: "xavier" }} }} }}
"""


@click.command()
@click.option("--caffe-python", required=True, help="The Python interpreter whose pycaffe is measured.")
@click.option("--rounds", default=9, show_default=True, help="Pairs of blocks.")
def main(caffe_python: str, rounds: int) -> None:
    """Time recaffe's LSTM against Caffe's."""
    table = Table("(T, N, D, H)", "recaffe ms", "Caffe ms", "ratio", "middle half", "peak MB", "Caffe's")
    with tempfile.TemporaryDirectory() as folder:
        for sizes in SIZES:
            net = Path(folder) / "net.prototxt"
            net.write_text(NET.format(**dict(zip("TNDH", sizes, strict=True))))
            script = str(Path(__file__).with_name("pycaffe_worker.py"))
            peers = ((sys.executable, "recaffe"), (caffe_python, "caffe"))
            workers = [Worker([python, script, module, str(net)]) for python, module in peers]
            result = compare_workers(workers, rounds)
            table.add_row(
                str(sizes),
                *result.cells(),
            )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
