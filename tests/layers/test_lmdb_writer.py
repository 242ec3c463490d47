"""write_lmdb: databases of Datum, whole or not there."""

import numpy as np
import pytest
import recaffe
from recaffe.layers.data import lmdb_writer
from recaffe.layers.data.lmdb_writer import write_lmdb
from recaffe.proto import Datum

lmdb = pytest.importorskip("lmdb")
IMAGE = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)


def read(path) -> dict[bytes, Datum]:
    with lmdb.open(str(path), readonly=True, lock=False) as env, env.begin() as transaction:
        return {key: Datum.FromString(value) for key, value in transaction.cursor()}


def test_the_records_are_caffes(tmp_path):
    assert write_lmdb(tmp_path / "db", [(IMAGE, 3), (IMAGE / 2, 4), (b"an image file", 5)]) == 3
    assert read(tmp_path / "db") == {
        b"00000000": Datum(channels=2, height=3, width=4, data=IMAGE.tobytes(), label=3),
        b"00000001": Datum(channels=2, height=3, width=4, float_data=np.arange(24) / 2, label=4),
        b"00000002": Datum(data=b"an image file", encoded=True, label=5),
    }
    assert [entry.name for entry in tmp_path.iterdir()] == ["db"]


def test_the_database_grows_as_needed(tmp_path, monkeypatch):
    monkeypatch.setattr(lmdb_writer, "FIRST_SIZE", 1 << 16)
    monkeypatch.setattr(lmdb_writer, "RECORDS_A_TRANSACTION", 30)
    image = np.random.default_rng(0).integers(0, 256, (3, 40, 40), dtype=np.uint8)
    assert write_lmdb(tmp_path / "db", ((image, i) for i in range(200))) == 200
    assert [datum.label for datum in read(tmp_path / "db").values()] == list(range(200))


def test_an_older_database_is_replaced_when_the_new_one_is_whole(tmp_path):
    write_lmdb(tmp_path / "db", [(IMAGE, 1)])

    def fails_half_way():
        yield IMAGE, 2
        raise KeyError("no more")

    with pytest.raises(KeyError, match="no more"):
        write_lmdb(tmp_path / "db", fails_half_way())
    assert [datum.label for datum in read(tmp_path / "db").values()] == [1]
    write_lmdb(tmp_path / "db", [(IMAGE, 7), (IMAGE, 8)])
    assert [datum.label for datum in read(tmp_path / "db").values()] == [7, 8]
    assert [entry.name for entry in tmp_path.iterdir()] == ["db"]


@pytest.mark.parametrize(
    ("pairs", "match"),
    [
        ([], "not written: there are no records"),
        ([(IMAGE[0], 1)], r"an image has the shape C x H x W, got \(3, 4\)"),
        ([(IMAGE.astype(int), 1)], "holds uint8 or floating-point values, got int64"),
    ],
)
def test_mistakes(tmp_path, pairs, match):
    with pytest.raises(recaffe.RecaffeError, match=match):
        write_lmdb(tmp_path / "db", pairs)
    assert list(tmp_path.iterdir()) == []


def test_other_things_are_not_replaced(tmp_path):
    (tmp_path / "db").mkdir()
    (tmp_path / "db/precious.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for name in ("db", "file"):
        with pytest.raises(recaffe.RecaffeError, match="something that is not an LMDB database is here already"):
            write_lmdb(tmp_path / name, [(IMAGE, 1)])
    with pytest.raises(recaffe.RecaffeError, match="cannot be written"):
        write_lmdb(tmp_path / "file/db", [(IMAGE, 1)])
