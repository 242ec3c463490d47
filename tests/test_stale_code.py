"""Compiled code is thrown away when any source beside it has changed, and only then."""

import os

from recaffe.framework.kernels.cpu.stale_code import forget_stale_code


def compiled_code(folder):
    return sorted(path.name for path in (folder / "__pycache__").glob("*.nb?"))


def test_code_is_kept_until_a_source_changes(tmp_path):
    source, cache = tmp_path / "rows.py", tmp_path / "__pycache__"
    source.write_text("x = 1")
    forget_stale_code(tmp_path, tmp_path.glob("*.py"))
    assert compiled_code(tmp_path) == []
    for change in (
        lambda: source.write_text("x = 10"),
        lambda: os.utime(source, ns=(1, 1)),
        lambda: (tmp_path / "tiles.py").write_text(""),
        lambda: (tmp_path / "tiles.py").unlink(),
    ):
        for name in ("rows.f-1.py311.nbi", "rows.f-1.py311.1.nbc"):
            (cache / name).write_text("")
        forget_stale_code(tmp_path, tmp_path.glob("*.py"))
        assert len(compiled_code(tmp_path)) == 2
        change()
        forget_stale_code(tmp_path, tmp_path.glob("*.py"))
        assert compiled_code(tmp_path) == []


def test_a_folder_that_cannot_be_written_is_left_alone(tmp_path):
    (tmp_path / "__pycache__").write_text("not a folder")
    forget_stale_code(tmp_path, [])
    assert (tmp_path / "__pycache__").read_text() == "not a folder"
