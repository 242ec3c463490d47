"""Transformer: crop, mirror, subtract the mean and scale images (``transform_param``)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...framework.errors import RecaffeError
from ...proto import TRAIN, BlobProto, TransformationParameter, blob_to_array, read_binary
from .optional import refuse_other_options

OPTIONS = frozenset(
    ("scale", "mirror", "crop_size", "crop_h", "crop_w", "mean_file", "mean_value", "force_color", "force_gray")
)


class Transformer:
    """out = (crop(image) - crop(mean)) * scale, mirrored left to right where drawn so.

    Shapes
        image: C x H x W; out: C x crop height x crop width, or C x H x W without a crop

    Options
        scale: factor, after the mean is subtracted
        crop_size, or crop_h and crop_w: at a random place while training, in the middle while testing
        mirror: flip each image with probability 1/2 (in both phases, as it is asked for by the layer's text)
        mean_file: a BlobProto of the images' shape; mean_value: one value for all channels, or one each
    """

    def __init__(self, param: TransformationParameter, phase: int, dtype: Any, rng: "np.random.Generator"):
        refuse_other_options("transform_param", param, OPTIONS)
        self._training = phase == TRAIN
        self._rng = rng
        self._mirror = param.mirror
        self._scale = np.dtype(dtype).type(param.scale)
        self._crop = (param.crop_h or param.crop_size, param.crop_w or param.crop_size)
        if bool(self._crop[0]) != bool(self._crop[1]):
            raise RecaffeError("transform_param: crop_h and crop_w go together; give both")
        if param.mean_file and param.mean_value:
            raise RecaffeError("transform_param: give mean_file or mean_value, not both")
        self._mean_file = param.mean_file
        self._mean = read_mean(param.mean_file, dtype) if param.mean_file else None
        self._mean_values = np.array(param.mean_value, dtype).reshape(-1, 1, 1) if param.mean_value else None

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, int, int]:
        """The shape that an image of ``shape`` gets.  Raises RecaffeError where mean or crop do not fit it."""
        channels, height, width = shape
        if self._mean is not None and self._mean.shape != shape:
            raise RecaffeError(
                f"the mean in {self._mean_file} has shape {self._mean.shape}, the image {shape}; they must agree"
            )
        if self._mean_values is not None and len(self._mean_values) not in (1, channels):
            raise RecaffeError(
                f"{len(self._mean_values)} mean_value(s) for {channels} channel(s); give one, or one for each"
            )
        crop_height, crop_width = self._crop
        if crop_height > height or crop_width > width:
            raise RecaffeError(f"a crop of {crop_height} x {crop_width} does not fit in an image of {height} x {width}")
        return channels, crop_height or height, crop_width or width

    def transform(self, images: Sequence[np.ndarray], out: np.ndarray) -> None:
        """Write the transformed ``images`` into ``out`` (images x ``output_shape`` of each)."""
        height, width = out.shape[2:]
        places = self._draw_places(images, height, width)
        cut = [
            image[:, top : top + height, left : left + width][..., ::step]
            for image, (top, left, step) in zip(images, places, strict=True)
        ]
        np.stack(cut, out=out)
        if self._mean is not None:
            for values, (top, left, step) in zip(out, places, strict=True):
                values -= self._mean[:, top : top + height, left : left + width][..., ::step]
        elif self._mean_values is not None:
            out -= self._mean_values
        if self._scale != 1:
            out *= self._scale

    def _draw_places(self, images: Sequence[np.ndarray], height: int, width: int) -> list[tuple[int, int, int]]:
        """For each image the first row and column of the crop, and -1 where it is mirrored, else 1."""
        free = np.array([(image.shape[1] - height, image.shape[2] - width) for image in images])
        starts = self._rng.integers(free + 1) if self._training and free.any() else free // 2
        steps = 1 - 2 * self._rng.integers(2, size=len(images)) if self._mirror else np.ones(len(images), int)
        return list(zip(*starts.T.tolist(), steps.tolist(), strict=True))


def read_mean(path: str, dtype: Any) -> np.ndarray:
    """The mean image in a .binaryproto, C x H x W."""
    try:
        mean = blob_to_array(read_binary(path, BlobProto))
    except RecaffeError as error:
        raise RecaffeError(str(error) if path in str(error) else f"{path}: {error}") from None
    shape = mean.shape[1:] if mean.ndim == 4 and mean.shape[0] == 1 else mean.shape
    if len(shape) != 3:
        raise RecaffeError(f"{path}: a mean has the shape 1 x C x H x W, found {mean.shape}")
    return mean.reshape(shape).astype(dtype)
