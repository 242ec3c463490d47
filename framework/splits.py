"""Split insertion: a top that several layers read is copied by a Split layer, under Caffe's names.

The gradients of the copies are summed by the Split's backward, so every other layer may overwrite the
diff of its bottoms.  The use of a top as a loss counts as one more reader.
"""

from collections import Counter

from ..proto import LayerParameter, NetParameter
from .errors import LayerError, nearest
from .layer import place

Top = tuple[int, int]  # (layer index, top index)


def insert_splits(param: NetParameter, wheres: list[str]) -> tuple[NetParameter, list[str]]:
    """``param`` with Split layers after every top that is read more than once, and the layers' places."""
    producer: dict[str, Top] = {}
    sources: dict[tuple[int, int], Top] = {}  # (layer index, bottom index) -> the top it reads
    readers: Counter[Top] = Counter()
    loss_weights: dict[Top, float] = {}
    for i, layer in enumerate(param.layer):
        for j, name in enumerate(layer.bottom):
            if name not in producer:
                close = nearest(name, producer)
                hint = f"; did you mean {close[0]!r}?" if close else ""
                raise LayerError(
                    f"{place(layer, wheres[i])}: unknown bottom blob {name!r} (bottom {j}):"
                    f" no layer above has it as a top{hint}"
                )
            sources[i, j] = producer[name]
            readers[producer[name]] += 1
        for j, name in enumerate(layer.top):
            producer[name] = (i, j)
        for j, weight in enumerate(layer.loss_weight[: len(layer.top)]):
            if weight:
                loss_weights[producer[layer.top[j]]] = weight
                readers[producer[layer.top[j]]] += 1

    result = NetParameter()
    result.CopyFrom(param)
    del result.layer[:]
    result_wheres = []
    used: Counter[Top] = Counter()
    for i, original in enumerate(param.layer):
        layer = result.layer.add()
        layer.CopyFrom(original)
        result_wheres.append(wheres[i])
        for j in range(len(layer.bottom)):
            top = sources[i, j]
            if readers[top] > 1:
                first = 1 if top in loss_weights else 0  # copy 0 is the loss's
                source = param.layer[top[0]]
                layer.bottom[j] = split_blob_name(source.name, layer.bottom[j], top[1], first + used[top])
                used[top] += 1
        for j, name in enumerate(layer.top):
            if readers[i, j] > 1:
                weight = loss_weights.get((i, j), 0.0)
                if weight:
                    layer.loss_weight[j] = 0.0
                result.layer.add().CopyFrom(_split_layer(layer.name, name, j, readers[i, j], weight))
                result_wheres.append(wheres[i])
    return result, result_wheres


def split_layer_name(layer: str, blob: str, top_index: int) -> str:
    """The name of the Split after top ``top_index`` of ``layer``."""
    return f"{blob}_{layer}_{top_index}_split"


def split_blob_name(layer: str, blob: str, top_index: int, copy: int) -> str:
    """The name of copy number ``copy`` that this Split makes."""
    return f"{split_layer_name(layer, blob, top_index)}_{copy}"


def _split_layer(layer: str, blob: str, top_index: int, copies: int, loss_weight: float) -> LayerParameter:
    split = LayerParameter(name=split_layer_name(layer, blob, top_index), type="Split", bottom=[blob])
    for copy in range(copies):
        split.top.append(split_blob_name(layer, blob, top_index, copy))
        if loss_weight:
            split.loss_weight.append(loss_weight if copy == 0 else 0.0)
    return split
