"""Build the wheel; check that it holds every file of the package folders, and that it works from an empty folder."""

import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {
    "framework/api": "recaffe",
    "framework": "recaffe/framework",
    "layers": "recaffe/layers",
    "proto": "recaffe/proto",
}
KEPT = {".py", ".pyi", ".proto", ".typed"}

SOLVER = """
base_lr: 0.1 lr_policy: "fixed" max_iter: 3 snapshot_prefix: "toy" solver_mode: CPU
net_param {
  layer { name: "x" type: "DummyData" top: "x" top: "t"
    dummy_data_param {
      shape { dim: 2 dim: 3 } shape { dim: 2 dim: 1 } data_filler { value: 1 } data_filler { value: 2 }
    } }
  layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y" inner_product_param { num_output: 1 } }
  layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }
}
"""


def expected_files() -> set[str]:
    """Every tracked or new source file, under its name in the wheel."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *FOLDERS],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    files = set()
    for name in listed:
        if Path(name).suffix in KEPT and (ROOT / name).exists():
            folder = next(folder for folder in FOLDERS if name.startswith(folder + "/"))
            files.add(FOLDERS[folder] + name.removeprefix(folder))
    return files


def main() -> None:
    """Exit with a message where a file is missing or the installed program fails."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        subprocess.run([sys.executable, "-m", "build", "--wheel", "--outdir", scratch, str(ROOT)], check=True)
        (wheel,) = folder.glob("recaffe-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            names = set(archive.namelist())
        missing = sorted(expected_files() - names)
        if missing:
            sys.exit("the wheel lacks: " + ", ".join(missing))
        venv.create(folder / "env", with_pip=True)
        python = folder / "env" / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "-q", str(wheel)], check=True)
        empty = folder / "empty"
        empty.mkdir()
        (empty / "solver.prototxt").write_text(SOLVER)
        program = folder / "env" / "bin" / "recaffe"
        subprocess.run([program, "train", "--solver=solver.prototxt"], cwd=empty, check=True)
        made = sorted(path.name for path in empty.iterdir())
        wanted = ["solver.prototxt", "toy_iter_3.caffemodel", "toy_iter_3.solverstate"]
        if made != wanted:
            sys.exit(f"expected {wanted} after training, found {made}")
    print("the wheel holds the whole tree and trains from an empty folder")


if __name__ == "__main__":
    main()
