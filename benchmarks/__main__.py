"""``python -m benchmarks``: a table of ratios, recaffe's time by the peer's (below 1: recaffe is faster)."""

import click
from rich.console import Console
from rich.table import Table

from . import recurrent, recurrent_step, training, transformer
from .caffe_time import caffe_ms
from .measure import compare
from .nets import NETS


@click.command()
@click.argument("nets", nargs=-1)
@click.option("--mode", type=click.Choice(["train", "test", "both"]), default="both", show_default=True)
@click.option("--rounds", default=9, show_default=True, help="Pairs of blocks.")
def main(nets: tuple[str, ...], mode: str, rounds: int) -> None:
    """Time NETS against PyTorch, and Caffe's own time where it is on the PATH.

    All whole nets by default; ``recurrent`` and ``transformer`` stand for all layers of that kind (forward and backward
    of one layer), ``recurrent_step`` for one step of recurrent layers, ``training`` for whole iterations of sequence
    models.
    """
    groups = {
        "recurrent": recurrent, "recurrent_step": recurrent_step, "transformer": transformer, "training": training,
    }  # fmt: skip
    layers = {name: group.names() for name, group in groups.items()}
    nets = tuple(net for given in nets for net in layers.get(given, [given]))
    alone = {name for group in layers.values() for name in group}
    unknown = [net for net in nets if net not in NETS and net not in alone]
    if unknown:
        raise click.UsageError(f"unknown net {unknown[0]!r} (known: {', '.join([*NETS, *layers])})")
    table = Table("net", "mode", "recaffe ms", "PyTorch ms", "ratio", "middle half", "peak MB", "PyTorch's", "Caffe ms")
    for net in nets or NETS:
        for kind in ("train",) if net in alone else ("train", "test") if mode == "both" else (mode,):
            result = compare(net, kind, "torch", rounds)
            caffe = caffe_ms(net) if kind == "train" and net in NETS else None
            table.add_row(
                net,
                kind,
                *result.cells(),
                "-" if caffe is None else f"{caffe:.2f}",
            )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
