"""Make recaffe_pb2.py and recaffe_pb2.pyi from recaffe.proto.

Run it from the root, after a change of the schema, with the oldest compiler of protobuf 6, whose
code every later runtime reads:

    pip install "grpcio-tools==1.72.1"
    python proto/generate.py
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROTO = Path(__file__).resolve().parent
REGISTERED = Path("recaffe/proto")  # the descriptor pool's name for the folder, as installed


def generate() -> None:
    """Compile the schema and put the two generated files beside it."""
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        folder = root / REGISTERED
        folder.mkdir(parents=True)
        shutil.copy(PROTO / "recaffe.proto", folder)
        compiler = [sys.executable, "-m", "grpc_tools.protoc", "-I.", "--python_out=.", "--pyi_out=."]
        subprocess.run([*compiler, str(REGISTERED / "recaffe.proto")], cwd=root, check=True)
        for name in ("recaffe_pb2.py", "recaffe_pb2.pyi"):
            shutil.copy(folder / name, PROTO)


if __name__ == "__main__":
    generate()
