"""The output of a net that scores each token of a vocabulary as the next one."""

from collections.abc import Iterable

import numpy as np

from .attention_weights import is_weights
from .errors import RecaffeError
from .net import Net


class ScoreOutput:
    """The blob ``name``, T x N x K, else the only one of ``candidates`` that has no weights of attention.

    What a Softmax layer gives is taken as probabilities.
    """

    def __init__(self, net: Net, name: str, candidates: Iterable[str]):
        candidates = [blob for blob in candidates if not is_weights(net, blob)]
        if not name and len(candidates) != 1:
            raise RecaffeError(
                f"net {net.name!r} has the outputs {', '.join(candidates) or 'none'}; say which holds the scores"
            )
        self.name = name or candidates[0]
        self._net, self._blob = net, net.blob(self.name)
        maker = [layer for layer in net.layers if self.name in net.top_names[layer.name]][-1]
        self._gives_probabilities = maker.type == "Softmax"

    def check_tokens(self, count: int, option: str) -> None:
        """Raise RecaffeError unless ``count`` tokens are scored: those of the vocabulary that ``option`` names."""
        scored = self._blob.shape[-1] if self._blob.ndim else 1
        if scored != count:
            raise RecaffeError(
                f"output {self.name!r} of net {self._net.name!r} scores {scored} tokens, but the vocabulary has"
                f" {count}; give the model's own with {option}"
            )

    def read_last(self, T: int, N: int) -> np.ndarray:
        """The scores behind the last of T steps of N streams, N x K: log P of each token, but for a constant."""
        blob = self._blob
        if blob.ndim < 2 or not blob.count or blob.count % (T * N) or blob.shape[0] not in (T, T * N):
            raise RecaffeError(f"output {self.name!r} has shape {blob.shape}, expected T x N x K with {T} x {N}")
        scores = self._net.backend.to_host(blob.data.reshape(T, N, -1)[-1]).astype(np.float64)
        if np.isnan(scores).any():
            raise RecaffeError(f"output {self.name!r} of net {self._net.name!r} has NaN in place of scores")
        if self._gives_probabilities:
            return np.log(np.maximum(scores, np.finfo(np.float64).tiny))
        return scores
