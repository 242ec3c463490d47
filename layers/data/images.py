"""Image files as arrays, with the values that OpenCV's imread, imdecode and resize give."""

import io
from pathlib import Path
from typing import Any

import numpy as np

from ...framework.errors import RecaffeError
from .optional import require

CHANNELS = {"L": 1, "RGB": 3, "RGBA": 4}


def read_image(path: str, color: bool) -> np.ndarray:
    """The image file ``path`` as C x H x W bytes: B, G, R, or one grey channel."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise RecaffeError(f"cannot read image {path}: {error.strerror}") from None
    try:
        return decode_image(data, color)
    except RecaffeError as error:
        raise RecaffeError(f"cannot read image {path}: {error}") from None


def decode_image(data: bytes, color: bool | None) -> np.ndarray:
    """The encoded image ``data`` as C x H x W bytes.

    ``color``: three channels B, G, R (True), one grey channel (False), or as many as the file has (None).
    """
    pillow = require("PIL.Image", "reading images")
    try:
        with pillow.open(io.BytesIO(data)) as image:
            if color is False and image.format == "JPEG":
                image.draft("L", image.size)  # the file's own brightness channel
            pixels = _pixels(image, color)
    except (OSError, SyntaxError, ValueError, EOFError, pillow.DecompressionBombError) as error:
        raise RecaffeError(f"not a readable image ({error})") from None
    return pixels.transpose(2, 0, 1)


def _pixels(image: Any, color: bool | None) -> np.ndarray:
    """H x W x C bytes, B before G before R."""
    if image.mode.startswith("I"):  # 16 bits of grey
        if color is None:
            raise RecaffeError("an image of 16 bits a channel; write it with 8 bits, or set force_color or force_gray")
        image = _from_16_bits(image)
    if color is None:
        mode = image.mode if image.mode in CHANNELS else "L" if image.mode in ("1", "LA") else "RGB"
    else:
        mode = "L" if image.mode in ("1", "L", "LA") and not color else "RGB"
    pixels = np.asarray(image if image.mode == mode else image.convert(mode))
    if pixels.ndim == 2:
        return pixels[:, :, np.newaxis]
    if color is False:
        return grey(pixels)[:, :, np.newaxis]
    return pixels[:, :, [2, 1, 0, 3][: pixels.shape[2]]]


def _from_16_bits(image: Any) -> Any:
    from PIL import Image

    return Image.fromarray((np.asarray(image).astype(np.int64) >> 8).clip(0, 255).astype(np.uint8))


def grey(rgb: np.ndarray) -> np.ndarray:
    """0.299 R + 0.587 G + 0.114 B in 15 bits, cut off, as libpng computes it."""
    weighted = rgb[..., 0] * np.int32(9797)
    weighted += rgb[..., 1] * np.int32(19234)
    weighted += rgb[..., 2] * np.int32(3737)
    return (weighted >> 15).astype(np.uint8)


def resize(image: np.ndarray, height: int, width: int) -> np.ndarray:
    """C x H x W bytes resized bilinearly to ``height`` x ``width``: pixel centres are aligned, edges repeated.

    Weights have 11 bits, as in OpenCV.
    """
    if image.shape[1:] == (height, width):
        return image
    y0, y1, below = _neighbours(image.shape[1], height)
    x0, x1, right = _neighbours(image.shape[2], width)
    image = image.astype(np.int32)
    columns = image[:, :, x0] * (2048 - right) + image[:, :, x1] * right
    columns >>= 4
    below = below[:, np.newaxis]
    upper = (columns[:, y0] * (2048 - below)) >> 16
    lower = (columns[:, y1] * below) >> 16
    return ((upper + lower + 2) >> 2).astype(np.uint8)


def _neighbours(size: int, new_size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each new pixel the two old ones it lies between, and the weight of the second, of 2048."""
    place = (np.arange(new_size) + 0.5) * (size / new_size) - 0.5
    place = place.clip(0, size - 1)
    first = np.floor(place).astype(np.intp)
    weight = np.rint((place - first) * 2048).astype(np.int32)
    return first, np.minimum(first + 1, size - 1), weight
