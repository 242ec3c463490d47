"""ImageData: image files of a list, resized and transformed."""

import sys
from pathlib import Path

import numpy as np
import pytest
import recaffe
from recaffe.layers.data.images import resize

from tests.layers.data_files import IMAGES, batches, data_net, write_images
from tests.support import assert_close

image_module = pytest.importorskip("PIL.Image")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_images(tmp_path)
    return tmp_path


def list_net(options: str = "batch_size: 4", transform: str = "", source: str = "images.txt", **more) -> recaffe.Net:
    return data_net(f'image_data_param {{ source: "{source}" {options} }}', transform, **more)


def bilinear(image: np.ndarray, height: int, width: int) -> np.ndarray:
    """C x H x W values at the centres of new pixels, in float64, one pixel after the other."""
    _, rows, columns = image.shape
    result = np.empty((len(image), height, width))
    for i in range(height):
        for j in range(width):
            y = min(max((i + 0.5) * rows / height - 0.5, 0), rows - 1)
            x = min(max((j + 0.5) * columns / width - 0.5, 0), columns - 1)
            top, left = int(y), int(x)
            bottom, right = min(top + 1, rows - 1), min(left + 1, columns - 1)
            above = image[:, top, left] * (1 - x + left) + image[:, top, right] * (x - left)
            below = image[:, bottom, left] * (1 - x + left) + image[:, bottom, right] * (x - left)
            result[:, i, j] = above * (1 - y + top) + below * (y - top)
    return result


def test_lines_come_in_order_again_and_again():
    got = batches(list_net(), 5)
    numbers = np.arange(20) % 10
    np.testing.assert_array_equal(np.concatenate([batch["t"] for batch in got]), numbers)
    np.testing.assert_array_equal(np.concatenate([batch["x"] for batch in got]), IMAGES[numbers])


def test_shuffled_epochs_hold_every_image_once():
    got = np.concatenate([batch["t"] for batch in batches(list_net("batch_size: 4 shuffle: true"), 15)]).reshape(6, 10)
    for epoch in got:
        np.testing.assert_array_equal(np.sort(epoch), range(10))
    assert len({tuple(epoch) for epoch in got}) == 6


def test_rand_skip():
    first = {int(batches(list_net("batch_size: 1 rand_skip: 3"), 1)[0]["t"][0]) for _ in range(40)}
    assert first == {0, 1, 2}
    with pytest.raises(recaffe.RecaffeError, match=r"rand_skip skips [0-9]+ images, but images.txt has 10"):
        for _ in range(20):
            list_net("batch_size: 1 rand_skip: 100")


@pytest.mark.parametrize("size", [(3, 3), (7, 8), (14, 16), (5, 20), (1, 1), (30, 4)])
def test_resizing_is_bilinear_to_one_grey_level(size):
    height, width = size
    (batch,) = batches(list_net(f"batch_size: 10 new_height: {height} new_width: {width}"), 1)
    right = [bilinear(image.astype(np.float64), height, width) for image in IMAGES]
    assert np.abs(batch["x"] - right).max() <= 1


def test_resizing_one_row():
    image = np.arange(0, 250, 50, dtype=np.uint8).reshape(1, 1, 5)
    np.testing.assert_array_equal(resize(image, 2, 10)[0], [[0, 13, 38, 63, 88, 113, 138, 163, 188, 200]] * 2)


def test_resize_then_crop_then_mean():
    options = "batch_size: 10 new_height: 9 new_width: 11"
    (batch,) = batches(list_net(options, "crop_size: 5 mean_value: 9", phase=recaffe.TEST), 1)
    right = np.array([bilinear(image.astype(np.float64), 9, 11) for image in IMAGES])[:, :, 2:7, 3:8] - 9
    assert np.abs(batch["x"] - right).max() <= 1


def test_grey():
    (batch,) = batches(list_net("batch_size: 10 is_color: false"), 1)
    blue, green, red = IMAGES.transpose(1, 0, 2, 3).astype(np.float64)
    assert batch["x"].shape == (10, 1, 7, 8)
    assert np.abs(batch["x"][:, 0] - (0.299 * red + 0.587 * green + 0.114 * blue)).max() < 1.01


def test_images_of_every_mode(folder):
    pixels = np.random.default_rng(0).integers(0, 256, (6, 5, 4), dtype=np.uint8)
    image_module.fromarray(pixels).save("alpha.png")
    image_module.fromarray(pixels[..., 0]).save("grey.png")
    image_module.fromarray(pixels[..., 0].astype(np.uint16) * 256 + 255).save("deep.png")
    image_module.fromarray(pixels[..., 0] > 99).save("bits.png")
    (folder / "modes.txt").write_text("alpha.png 0\ngrey.png 1\ndeep.png 2\nbits.png 3\n")
    (color,) = batches(list_net("batch_size: 4", source="modes.txt"), 1)
    np.testing.assert_array_equal(color["x"][0], pixels[..., 2::-1].transpose(2, 0, 1))
    for i in (1, 2):
        np.testing.assert_array_equal(color["x"][i], np.broadcast_to(pixels[..., 0], (3, 6, 5)))
    np.testing.assert_array_equal(color["x"][3, 0], np.where(pixels[..., 0] > 99, 255, 0))
    (grey,) = batches(list_net("batch_size: 4 is_color: false", source="modes.txt"), 1)
    np.testing.assert_array_equal(grey["x"][1:3, 0], color["x"][1:3, 0])


def test_jpeg(folder):
    y, x = np.mgrid[:16, :16]
    smooth = np.stack([8 * y, 8 * x, 4 * (x + y)], axis=-1).astype(np.uint8)
    image_module.fromarray(smooth).save("smooth.jpg", quality=95)
    (folder / "jpeg.txt").write_text("smooth.jpg 1\n")
    (batch,) = batches(list_net("batch_size: 1", source="jpeg.txt"), 1)
    assert np.abs(batch["x"][0] - smooth[..., ::-1].transpose(2, 0, 1)).max() < 12
    (batch,) = batches(list_net("batch_size: 1 is_color: false", source="jpeg.txt"), 1)
    assert np.abs(batch["x"][0, 0] - smooth @ [0.299, 0.587, 0.114]).max() < 6


def test_root_folder_is_put_before_each_name(folder):
    (folder / "sub").mkdir()
    (folder / "image 3.png").rename(folder / "sub/pre_a.png")
    (folder / "rooted.txt").write_text("\n a.png -2\n\n")
    (batch,) = batches(list_net('batch_size: 1 root_folder: "sub/pre_"', source="rooted.txt"), 1)
    np.testing.assert_array_equal(batch["x"][0], IMAGES[3])
    assert batch["t"] == -2


def test_real_labels_and_tabs(folder):
    (folder / "list.txt").write_text("image 1.png\t0.25\n")
    np.testing.assert_array_equal(batches(list_net("batch_size: 1", source="list.txt"), 1)[0]["t"], [0.25])


def test_batches_of_one_follow_the_size_of_the_image(folder):
    image_module.fromarray(np.zeros((4, 9, 3), np.uint8)).save("other.png")
    (folder / "two.txt").write_text("image 0.png 0\nother.png 1\n")
    assert [b["x"].shape for b in batches(list_net("batch_size: 1", source="two.txt"), 3)] == [
        (1, 3, 7, 8),
        (1, 3, 4, 9),
        (1, 3, 7, 8),
    ]
    with pytest.raises(recaffe.RecaffeError, match=r"two.txt:2: the image has shape \(3, 4, 9\), expected \(3, 7, 8\)"):
        batches(list_net("batch_size: 2", source="two.txt"), 1)


def fail_to_build(match: str, text: str | None = None, **net) -> None:
    if text is not None:
        Path("bad.txt").write_text(text)
        net["source"] = "bad.txt"
    with pytest.raises(recaffe.RecaffeError, match=match):
        list_net(**net)


def test_bad_lists():
    fail_to_build("source is not given", source="")
    fail_to_build("nolist: the list cannot be read: No such file", source="nolist")
    fail_to_build("bad.txt: the list is empty", "\n \n")
    fail_to_build("bad.txt:2: expected `file label`, found 'image 0.png'", "\nimage 0.png\n")
    fail_to_build("bad.txt:1: expected `file label`, found '7'", "7\n")


def test_bad_images(folder):
    (folder / "text.png").write_text("this is text")
    (folder / "cut.png").write_bytes((folder / "image 0.png").read_bytes()[:150])
    fail_to_build("bad.txt:1: cannot read image nofile.png: No such file", "nofile.png 0\n")
    fail_to_build("bad.txt:1: cannot read image text.png: not a readable image", "text.png 0\n")
    fail_to_build("bad.txt:1: cannot read image cut.png: not a readable image", "cut.png 0\n")
    (folder / "later.txt").write_text("image 0.png 0\nimage 1.png 1\ntext.png 2\n")
    net = list_net("batch_size: 1", source="later.txt")
    batches(net, 2)
    with pytest.raises(recaffe.RecaffeError, match=r"layer 'd'.*later.txt:3: cannot read image text.png"):
        net.forward()


def test_mistakes_in_the_options():
    fail_to_build("new_height and new_width go together", options="new_height: 5")
    fail_to_build("sets color_aug", options="color_aug: true")
    fail_to_build("images.txt:1: a crop of 9 x 9 does not fit", transform="crop_size: 9")


def test_without_its_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(recaffe.RecaffeError, match=r"needs the Python package 'PIL'.*pip install 'recaffe\[data\]'"):
        list_net()


def test_float64():
    net = list_net(transform="scale: 0.1", dtype=np.float64)
    assert_close(batches(net, 1)[0]["x"], IMAGES[:4] * np.float64(np.float32(0.1)), 1e-15)
