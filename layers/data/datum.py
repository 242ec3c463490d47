"""Datum: one record of a database, an image with its label."""

from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from ...framework.errors import RecaffeError
from ...proto import Datum
from .images import decode_image


def read_datum(record: Any, color: bool | None) -> tuple[np.ndarray, int]:
    """The image (C x H x W, bytes or float32) and the label of the serialized Datum ``record``.

    ``color`` is how an encoded image is decoded; see ``images.decode_image``.
    """
    try:
        datum = Datum.FromString(record)
    except DecodeError:
        raise RecaffeError(f"expected a Datum, found {len(record)} bytes of something else") from None
    if datum.encoded:
        return decode_image(datum.data, color), datum.label
    shape = (datum.channels, datum.height, datum.width)
    if min(shape) < 1:
        raise RecaffeError(f"a Datum has at least one channel, row and column, found {shape}; is it a Datum?")
    raw = datum.data
    image = np.frombuffer(raw, np.uint8) if raw else np.array(datum.float_data, np.float32)
    if image.size != shape[0] * shape[1] * shape[2]:
        raise RecaffeError(f"a Datum of shape {shape} needs {np.prod(shape)} values, found {image.size}")
    return image.reshape(shape), datum.label


def make_datum(image: np.ndarray | bytes, label: int) -> Datum:
    """A Datum of an image and its label.

    ``image``: C x H x W bytes (uint8) or floats, or the bytes of an image file (stored encoded).
    """
    if isinstance(image, bytes):
        return Datum(data=image, encoded=True, label=label)
    image = np.asarray(image)
    if image.ndim != 3:
        raise RecaffeError(f"an image has the shape C x H x W, got {image.shape}")
    channels, height, width = image.shape
    datum = Datum(channels=channels, height=height, width=width, label=label)
    if image.dtype == np.uint8:
        datum.data = image.tobytes()
    elif np.issubdtype(image.dtype, np.floating):
        datum.float_data.extend(image.ravel().tolist())
    else:
        raise RecaffeError(f"an image holds uint8 or floating-point values, got {image.dtype}")
    return datum
