"""What a token costs a transformer that writes: with the keys and values kept, and with all that came before run again.

    python -m benchmarks.generation [deploy.prototxt]

Prints milliseconds a token behind 512 others, and their ratio.
"""

import statistics
from collections.abc import Callable
from time import perf_counter

import click
import numpy as np
import recaffe
from recaffe.framework.generation import StepNet
from recaffe.proto import parse_net

NET = """name: "writer"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 1 } } }
layer { name: "embed" type: "Embed" bottom: "data" top: "embed"
  embed_param { input_dim: 256 num_output: 256 bias_term: false weight_filler { type: "gaussian" std: 0.1 } } }
layer { name: "place" type: "PositionalEncoding" bottom: "embed" top: "place"
  positional_encoding_param { carry_state: true } }
layer { name: "blocks" type: "TransformerEncoder" bottom: "place" top: "blocks"
  transformer_param { num_layers: 4 num_output: 256 num_heads: 4 causal: true carry_state: true } }
layer { name: "scores" type: "InnerProduct" bottom: "blocks" top: "scores"
  inner_product_param { axis: 2 num_output: 256 weight_filler { type: "xavier" } } }
"""
BEFORE, TOKENS, ROUNDS = 512, 32, 5


def milliseconds(run: Callable[[], object]) -> float:
    """How long ``run`` takes."""
    start = perf_counter()
    run()
    return 1000 * (perf_counter() - start)


def cached(net: StepNet, text: np.ndarray) -> float:
    """Milliseconds a token behind ``text``, each read alone."""
    net.restart()
    net.feed(text)
    token = text[-1:]
    return milliseconds(lambda: [net.feed(token) for _ in range(TOKENS)]) / TOKENS


def run_again(net: StepNet, text: np.ndarray) -> float:
    """Milliseconds to read ``text`` and the token from the start."""
    net.restart()
    return milliseconds(lambda: net.feed(text))


@click.command()
@click.argument("model", default="")
def main(model: str) -> None:
    """Time the language model MODEL, by default four layers of width 256 with 4 heads."""
    net = recaffe.Net(model or parse_net(NET), recaffe.TEST)
    step_net = StepNet(net)
    text = np.arange(BEFORE)[:, None] % 32
    for measure in (cached, run_again):
        measure(step_net, text)
    times = [(cached(step_net, text), run_again(step_net, text)) for _ in range(ROUNDS)]
    kept, again = (statistics.median(column) for column in zip(*times, strict=True))
    ratio = statistics.median(a / b for a, b in times)
    print(f"{kept:.2f} ms a token, {again:.2f} ms with the {BEFORE} before it run again: ratio {ratio:.3f}")


if __name__ == "__main__":
    main()
