"""MemoryData: batches of arrays that the caller hands over."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...framework.blob import Blob
from ...framework.errors import RecaffeError
from ...framework.layer import Layer, register
from .optional import refuse_other_options

log = logging.getLogger("recaffe")
OPTIONS = frozenset(("batch_size", "channels", "height", "width"))


@register
class MemoryData(Layer):
    """top 0, top 1 = the next rows of the arrays given to ``reset``, again and again.

    Shapes
        top 0: batch_size x channels x height x width; top 1: batch_size

    Options (memory_data_param): batch_size, channels, height, width; all are needed.

    A net that is resumed gets its arrays first (``net.layer_dict[name].reset``), its state afterwards.
    """

    type = "MemoryData"
    bottoms, tops = (0, 0), (2, 2)

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        param = self.param.memory_data_param
        try:
            refuse_other_options("memory_data_param", param, OPTIONS)
        except RecaffeError as error:
            self.fail(str(error))
        self.shape = (param.batch_size, param.channels, param.height, param.width)
        if min(self.shape) < 1:
            self.fail(
                f"memory_data_param: batch_size, channels, height and width are {self.shape}; all must be 1 or more"
            )
        if self.param.HasField("transform_param"):
            log.warning("layer %r: MemoryData does not transform its arrays; transform_param is not used", self.name)
        top[0].reshape(self.shape)
        top[1].reshape(self.shape[0])
        self.data: np.ndarray | None = None
        self.labels: np.ndarray | None = None
        self.position = 0

    def reset(self, data: np.ndarray, labels: np.ndarray) -> None:
        """Start anew with ``data`` (rows x channels x height x width) and one label a row.

        The number of rows is a multiple of the batch size.  Arrays of the net's dtype are not copied.
        """
        data = np.ascontiguousarray(data, self.dtype)
        labels = np.ascontiguousarray(labels, self.dtype).reshape(-1)
        batch_size, row_shape = self.shape[0], self.shape[1:]
        if data.shape[1:] != row_shape:
            self.fail(f"data has shape {data.shape}, expected rows of {row_shape}")
        if not len(data) or len(data) % batch_size:
            self.fail(f"data has {len(data)} rows, expected a multiple of batch_size {batch_size}")
        if len(labels) != len(data):
            self.fail(f"there are {len(labels)} labels for {len(data)} rows")
        self.data, self.labels, self.position = data, labels, 0

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        """The shapes are those of the options."""

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        if self.data is None or self.labels is None:
            self.fail("there is no data yet; call reset(data, labels) first")
        rows = slice(self.position, self.position + self.shape[0])
        if rows.stop > len(self.data):
            self.fail(f"the state goes on at row {rows.start} of data that has {len(self.data)} rows")
        top[0].data[...] = self.backend.to_device(self.data[rows])
        top[1].data[...] = self.backend.to_device(self.labels[rows])
        self.position = rows.stop % len(self.data)

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        """There is nothing below."""

    def get_state(self) -> dict[str, Any]:
        return {"position": self.position}

    def set_state(self, state: Mapping[str, Any]) -> None:
        self.position = int(state["position"])
