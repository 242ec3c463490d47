"""What BVLC Caffe's data layers give from the same files, batch after batch."""

from pathlib import Path

import numpy as np
import pytest
import recaffe

from tests.support import GOLDEN, assert_close

for library in ("lmdb", "h5py", "PIL"):
    pytest.importorskip(library)

FOLDER = GOLDEN / "data"
NAMES = sorted(path.stem for path in FOLDER.glob("*.prototxt"))


@pytest.mark.parametrize("name", NAMES)
def test_batches_are_caffes(name, monkeypatch):
    monkeypatch.chdir(FOLDER)
    net = recaffe.Net(Path(f"{name}.prototxt"), recaffe.TEST)
    with np.load(f"{name}.npz") as stored:
        expected = {key: stored[key] for key in stored.files}
    passes = 1 + max(int(key.rsplit(":", 1)[1]) for key in expected)
    for k in range(passes):
        net.forward()
        for blob, values in net.blobs.items():
            assert_close(values.data, expected[f"out:{blob}:{k}"], 1e-6, f"{name}: {blob} of pass {k}")
    net.close()
