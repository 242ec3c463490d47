"""Small data files for the tests of the data layers, and layers that read them."""

from pathlib import Path

import numpy as np
import pytest
import recaffe
from recaffe.layers.data.lmdb_writer import write_lmdb

from tests.support import make_net

rng = np.random.default_rng(3)
IMAGES = rng.integers(0, 256, (10, 3, 7, 8), dtype=np.uint8)
ROWS = rng.normal(size=(11, 2, 3)).astype(np.float32)


def write_images(folder: Path) -> None:
    """images.txt with ten PNG files, labels 0 to 9, and the database images_lmdb of the same."""
    image = pytest.importorskip("PIL.Image")
    lines = []
    for i, pixels in enumerate(IMAGES):
        image.fromarray(pixels[::-1].transpose(1, 2, 0)).save(folder / f"image {i}.png")
        lines.append(f"image {i}.png {i}\n")
    (folder / "images.txt").write_text("".join(lines))
    write_lmdb(folder / "images_lmdb", zip(IMAGES, range(len(IMAGES)), strict=True))


def write_rows(folder: Path) -> None:
    """rows.txt with three HDF5 files of 2, 5 and 4 rows; `label` counts the rows."""
    h5py = pytest.importorskip("h5py")
    start = 0
    for i, count in enumerate((2, 5, 4)):
        with h5py.File(folder / f"rows{i}.h5", "w") as file:
            file["data"] = ROWS[start : start + count]
            file["label"] = np.arange(start, start + count)
        start += count
    (folder / "rows.txt").write_text("rows0.h5\nrows1.h5\n\nrows2.h5\n")


def data_net(options: str, transform: str = "", phase: int = recaffe.TRAIN, tops: str = "x t", **more) -> recaffe.Net:
    """A net of one data layer; the layer's type follows from the name of its block in ``options``."""
    types = {"data_param": "Data", "image_data_param": "ImageData", "hdf5_data_param": "HDF5Data"}
    layer_type = types[options.split()[0]]
    names = " ".join(f'top: "{name}"' for name in tops.split())
    transform = f"transform_param {{ {transform} }}" if transform else ""
    return make_net(f'layer {{ name: "d" type: "{layer_type}" {names} {options} {transform} }}', phase, **more)


def batches(net: recaffe.Net, count: int) -> list[dict[str, np.ndarray]]:
    """The blobs of the next ``count`` passes."""
    result = []
    for _ in range(count):
        net.forward()
        result.append({name: np.array(net.backend.to_host(blob.data)) for name, blob in net.blobs.items()})
    return result


def same_batches(got: list[dict[str, np.ndarray]], expected: list[dict[str, np.ndarray]]) -> None:
    """Fail unless all bits are the same."""
    assert len(got) == len(expected)
    for k, (one, other) in enumerate(zip(got, expected, strict=True)):
        for name, values in other.items():
            np.testing.assert_array_equal(one[name], values, err_msg=f"{name} of pass {k}")
