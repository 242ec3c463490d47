"""Data: records of databases, transformed."""

import io
import shutil
import sys

import numpy as np
import pytest
import recaffe
from recaffe.layers.data.lmdb_writer import write_lmdb
from recaffe.proto import array_to_blob, write_binary

from tests.layers.data_files import IMAGES, batches, data_net, write_images
from tests.support import assert_close

lmdb = pytest.importorskip("lmdb")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_images(tmp_path)
    return tmp_path


def images_net(options: str = "batch_size: 4", transform: str = "", source: str = "images_lmdb", **more) -> recaffe.Net:
    return data_net(f'data_param {{ source: "{source}" backend: LMDB {options} }}', transform, **more)


def encoded(pixels: np.ndarray, kind: str = "PNG") -> bytes:
    """H x W or H x W x C pixels as an image file."""
    image = pytest.importorskip("PIL.Image")
    file = io.BytesIO()
    image.fromarray(pixels).save(file, kind)
    return file.getvalue()


def put(path: str, records: dict[bytes, bytes]) -> None:
    with lmdb.open(path) as env, env.begin(write=True) as transaction:
        for key, value in records.items():
            transaction.put(key, value)


def test_records_come_in_the_order_of_their_keys_epoch_after_epoch():
    net = images_net()
    got = batches(net, 5)
    numbers = np.arange(20) % 10
    np.testing.assert_array_equal(np.concatenate([batch["t"] for batch in got]), numbers)
    np.testing.assert_array_equal(np.concatenate([batch["x"] for batch in got]), IMAGES[numbers])


def test_a_batch_may_hold_several_epochs():
    (batch,) = batches(images_net("batch_size: 23"), 1)
    np.testing.assert_array_equal(batch["t"], np.arange(23) % 10)


def test_without_a_label_top():
    net = images_net(tops="x")
    assert list(batches(net, 1)[0]) == ["x"]


def test_float_records_are_kept():
    values = np.random.default_rng(0).normal(size=(3, 2, 4, 5)).astype(np.float32)
    write_lmdb("float_lmdb", [(image, 100 + i) for i, image in enumerate(values)])
    (batch,) = batches(images_net("batch_size: 3", "scale: 0.5", "float_lmdb"), 1)
    np.testing.assert_array_equal(batch["x"], values * 0.5)
    np.testing.assert_array_equal(batch["t"], [100, 101, 102])


def test_the_mean_is_cropped_as_the_image_is():
    mean = np.random.default_rng(1).normal(100, 20, (3, 7, 8)).astype(np.float32)
    for shape in ((1, 3, 7, 8), (3, 7, 8)):
        write_binary("mean.binaryproto", array_to_blob(mean.reshape(shape)))
        net = images_net("batch_size: 10", 'mean_file: "mean.binaryproto" crop_size: 5 scale: 0.1', phase=recaffe.TEST)
        (batch,) = batches(net, 1)
        assert_close(batch["x"], (IMAGES - mean)[:, :, 1:6, 1:6] * 0.1, 1e-6)


def test_mean_values():
    (batch,) = batches(images_net("batch_size: 10", "mean_value: 10 mean_value: 20 mean_value: 30.5"), 1)
    assert_close(batch["x"], IMAGES - np.array([10, 20, 30.5]).reshape(3, 1, 1), 1e-6)
    (batch,) = batches(images_net("batch_size: 10", "mean_value: 7"), 1)
    assert_close(batch["x"], IMAGES - 7.0, 1e-6)


def test_crops_are_anywhere_while_training_and_in_the_middle_while_testing():
    seen = set()
    for batch in batches(images_net("batch_size: 10", "crop_h: 5 crop_w: 4"), 60):
        for crop, image in zip(batch["x"], IMAGES, strict=True):
            places = [(r, c) for r in range(3) for c in range(5) if (image[:, r : r + 5, c : c + 4] == crop).all()]
            assert len(places) == 1
            seen.update(places)
    assert len(seen) == 15
    (batch,) = batches(images_net("batch_size: 10", "crop_size: 4", phase=recaffe.TEST), 1)
    np.testing.assert_array_equal(batch["x"], IMAGES[:, :, 1:5, 2:6])


@pytest.mark.parametrize("phase", [recaffe.TRAIN, recaffe.TEST])
def test_half_of_the_images_are_mirrored_and_their_mean_with_them(phase):
    mean = np.random.default_rng(1).normal(100, 20, (3, 7, 8)).astype(np.float32)
    write_binary("mean.binaryproto", array_to_blob(mean[np.newaxis]))
    net = images_net("batch_size: 10", 'mirror: true mean_file: "mean.binaryproto"', phase=phase)
    mirrored = 0
    for batch in batches(net, 60):
        for image, right in zip(batch["x"], IMAGES - mean, strict=True):
            flipped = not np.allclose(image, right)
            mirrored += flipped
            np.testing.assert_allclose(image, right[..., ::-1] if flipped else right, rtol=1e-5, atol=1e-4)
    assert 230 < mirrored < 370


def test_rand_skip_starts_somewhere_below_it():
    first = {int(batches(images_net("batch_size: 1 rand_skip: 4"), 1)[0]["t"][0]) for _ in range(60)}
    assert first == {0, 1, 2, 3}


def test_encoded_images_are_blue_green_red():
    pixels = np.random.default_rng(2).integers(0, 256, (4, 5, 6, 3), dtype=np.uint8)
    write_lmdb("encoded_lmdb", [(encoded(image), i) for i, image in enumerate(pixels)])
    right = pixels[..., ::-1].transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(batches(images_net(source="encoded_lmdb"), 1)[0]["x"], right)
    (grey,) = batches(images_net("batch_size: 4", "force_gray: true", "encoded_lmdb"), 1)
    weighted = (pixels.astype(np.float64) @ [0.299, 0.587, 0.114])[:, np.newaxis]
    assert grey["x"].shape == weighted.shape
    assert np.abs(grey["x"] - weighted).max() < 1.01


def test_encoded_grey_images():
    pixels = np.random.default_rng(2).integers(0, 256, (4, 5, 6), dtype=np.uint8)
    write_lmdb("grey_lmdb", [(encoded(image), i) for i, image in enumerate(pixels)])
    np.testing.assert_array_equal(batches(images_net(source="grey_lmdb"), 1)[0]["x"], pixels[:, np.newaxis])
    for options, transform in (("batch_size: 4", "force_color: true"), ("batch_size: 4 force_encoded_color: true", "")):
        (batch,) = batches(images_net(options, transform, "grey_lmdb"), 1)
        np.testing.assert_array_equal(batch["x"], np.repeat(pixels[:, np.newaxis], 3, axis=1))


def test_images_of_other_sizes_need_a_crop_or_single_batches():
    sizes = [np.full((3, 5 + i, 6), i, np.uint8) for i in range(4)]
    write_lmdb("sizes_lmdb", [(image, i) for i, image in enumerate(sizes)])
    shapes = [batch["x"].shape for batch in batches(images_net("batch_size: 1", source="sizes_lmdb"), 5)]
    assert shapes == [(1, 3, 5, 6), (1, 3, 6, 6), (1, 3, 7, 6), (1, 3, 8, 6), (1, 3, 5, 6)]
    (batch,) = batches(images_net("batch_size: 4", "crop_size: 5", "sizes_lmdb"), 1)
    np.testing.assert_array_equal(batch["x"][:, 0, 0, 0], range(4))
    with pytest.raises(recaffe.RecaffeError, match=r"sizes_lmdb, key '00000001'.* \(3, 6, 6\), expected \(3, 5, 6\)"):
        batches(images_net("batch_size: 2", source="sizes_lmdb"), 1)


def test_two_layers_read_one_database():
    train, test = images_net(), images_net(phase=recaffe.TEST)
    for _ in range(3):
        train.forward()
        test.forward()
        np.testing.assert_array_equal(train.blobs["t"].data, test.blobs["t"].data)


def test_the_kind_of_database_is_seen_where_it_is_not_given():
    net = data_net('data_param { source: "images_lmdb" batch_size: 2 }')
    np.testing.assert_array_equal(batches(net, 1)[0]["t"], [0, 1])


def test_a_file_alone_is_a_database_too(folder):
    shutil.copy(folder / "images_lmdb/data.mdb", folder / "alone.mdb")
    np.testing.assert_array_equal(batches(images_net(source="alone.mdb"), 1)[0]["t"], range(4))


def test_float64():
    net = images_net(transform="mean_value: 0.1 scale: 0.3", dtype=np.float64)
    mean, scale = np.array([0.1, 0.3], np.float32).astype(np.float64)
    assert_close(batches(net, 1)[0]["x"], (IMAGES[:4] - mean) * scale, 1e-15)


def fail_to_build(match: str, **net) -> None:
    with pytest.raises(recaffe.RecaffeError, match=match):
        images_net(**net)


def test_mistakes_in_the_options():
    fail_to_build("batch_size is 0", options="")
    fail_to_build("source is not given", source="")
    fail_to_build("no_lmdb: there is no such database", source="no_lmdb")
    fail_to_build("crop of 8 x 8 does not fit in an image of 7 x 8", transform="crop_size: 8")
    fail_to_build("crop_h and crop_w go together", transform="crop_h: 3")
    fail_to_build("2 mean_value.s. for 3 channel", transform="mean_value: 1 mean_value: 2")
    fail_to_build("not both", transform="force_color: true force_gray: true")
    fail_to_build("sets shuffle: an option of a fork", options="batch_size: 2 shuffle: true")
    fail_to_build("sets resize_param", transform="resize_param { height: 3 }")


def test_a_mean_that_does_not_fit(folder):
    write_binary("mean.binaryproto", array_to_blob(np.zeros((1, 3, 5, 5), np.float32)))
    mean = 'mean_file: "mean.binaryproto"'
    fail_to_build(r"mean.binaryproto has shape \(3, 5, 5\), the image \(3, 7, 8\)", transform=mean)
    fail_to_build("not both", transform=mean + " mean_value: 3")
    fail_to_build("nomean: there is no such file", transform='mean_file: "nomean"')
    write_binary("mean.binaryproto", array_to_blob(np.zeros(9, np.float32)))
    fail_to_build(r"1 x C x H x W, found \(9,\)", transform=mean)


def test_errors_name_the_layer(folder):
    text = 'name: "n"\nlayer { name: "d" type: "Data" top: "x" data_param { source: "nix" } }'
    (folder / "net.prototxt").write_text(text)
    with pytest.raises(recaffe.RecaffeError, match=r"net.prototxt:2: layer 'd' \(type 'Data'\): nix: "):
        recaffe.Net("net.prototxt", recaffe.TRAIN)


def test_bad_databases(folder):
    (folder / "empty").mkdir()
    fail_to_build("empty: there is no LMDB database here", source="empty")
    (folder / "junk").mkdir()
    (folder / "junk/data.mdb").write_bytes(bytes(range(256)) * 64)
    fail_to_build("junk: cannot be opened as an LMDB database", source="junk")
    with lmdb.open("nothing"):
        pass
    fail_to_build("nothing: the database is empty", source="nothing")


@pytest.mark.parametrize("size", [0, 5000, 8192, 12000])
def test_a_database_cut_short(folder, size):
    data = (folder / "images_lmdb/data.mdb").read_bytes()
    (folder / "short").mkdir()
    (folder / "short/data.mdb").write_bytes(data[:size])
    fail_to_build("short: (the LMDB database is cut short: .* expected|cannot be opened)", source="short")


def test_damaged_pages(folder):
    write_lmdb("many_lmdb", ((IMAGES[i % 10], i) for i in range(500)))
    data = bytearray((folder / "many_lmdb/data.mdb").read_bytes())
    for page in range(2, len(data) // 4096):
        data[4096 * page + 10 : 4096 * page + 12] = b"\xff\xff"
    (folder / "many_lmdb/data.mdb").write_bytes(data)
    fail_to_build("many_lmdb: damaged", source="many_lmdb")


def test_records_that_are_no_datum():
    put("words", {b"a": b"these are no datum"})
    fail_to_build(r"words, key 'a': .*expected a Datum", source="words")
    put("bare", {b"a": b""})
    fail_to_build(r"bare, key 'a': .*found \(0, 0, 0\)", source="bare")
    datum = recaffe.proto.Datum(channels=3, height=2, width=2, data=b"1234567", label=1)
    put("short", {b"a": datum.SerializeToString()})
    fail_to_build(r"short, key 'a': a Datum of shape \(3, 2, 2\) needs 12 values, found 7", source="short")
    put("noimage", {b"a": recaffe.proto.Datum(encoded=True, data=b"no image").SerializeToString()})
    fail_to_build(r"noimage, key 'a': not a readable image", source="noimage")
    half = encoded(np.zeros((50, 50), np.uint8))[:60]
    put("cut", {b"a": recaffe.proto.Datum(encoded=True, data=half).SerializeToString()})
    fail_to_build(r"cut, key 'a': not a readable image", source="cut")


def test_a_bad_record_later_on_is_told_when_it_is_needed():
    good = recaffe.proto.Datum(channels=1, height=1, width=1, data=b"1", label=1).SerializeToString()
    put("later", {b"%d" % i: good if i < 5 else b"nonsense" for i in range(7)})
    net = images_net("batch_size: 2", source="later")
    assert len(batches(net, 2)) == 2
    for _ in range(2):
        with pytest.raises(recaffe.RecaffeError, match=r"layer 'd'.*later, key '5': .*Datum"):
            net.forward()


def test_without_its_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "lmdb", None)
    with pytest.raises(recaffe.RecaffeError, match=r"needs the Python package 'lmdb': pip install 'recaffe\[data\]'"):
        images_net()


def test_a_leveldb_is_told_from_an_lmdb():
    with pytest.raises(recaffe.RecaffeError, match="images_lmdb: this is a database of kind LMDB; set backend: LMDB"):
        data_net('data_param { source: "images_lmdb" batch_size: 2 backend: LEVELDB }')


def test_leveldb_without_its_library(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "plyvel", None)
    (folder / "level").mkdir()
    (folder / "level/CURRENT").write_text("MANIFEST-000001\n")
    needs = r"level needs the Python package 'plyvel'.* convert the database to LMDB"
    with pytest.raises(recaffe.RecaffeError, match=needs):
        data_net('data_param { source: "level" batch_size: 2 backend: LEVELDB }')


def test_leveldb():
    plyvel = pytest.importorskip("plyvel")
    with plyvel.DB("level", create_if_missing=True) as database:
        for i, image in enumerate(IMAGES):
            datum = recaffe.proto.Datum(channels=3, height=7, width=8, data=image.tobytes(), label=i)
            database.put(b"%03d" % i, datum.SerializeToString())
    net = data_net('data_param { source: "level" batch_size: 4 }')
    other = data_net('data_param { source: "level" batch_size: 4 backend: LEVELDB }')
    got = batches(net, 5)
    np.testing.assert_array_equal(np.concatenate([batch["t"] for batch in got]), np.arange(20) % 10)
    np.testing.assert_array_equal(np.concatenate([batch["x"] for batch in got]), IMAGES[np.arange(20) % 10])
    np.testing.assert_array_equal(batches(other, 1)[0]["t"], range(4))


def test_leveldb_that_is_damaged(folder):
    pytest.importorskip("plyvel")
    (folder / "level").mkdir()
    (folder / "level/CURRENT").write_text("MANIFEST-000001\n")
    with pytest.raises(recaffe.RecaffeError, match="level: cannot be opened as a LevelDB database"):
        data_net('data_param { source: "level" batch_size: 2 backend: LEVELDB }')
    (folder / "images_lmdb/CURRENT").write_text("")
    (folder / "images_lmdb/data.mdb").unlink()
    with pytest.raises(recaffe.RecaffeError, match="this is a database of kind LEVELDB"):
        images_net()
