"""Real Caffe's own ``caffe time``, where ``caffe`` is on the PATH."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from recaffe.proto import write_text

from .nets import training_net


def caffe_ms(net: str, iterations: int = 20) -> float | None:
    """Milliseconds that Caffe's forward and backward pass take together; None without Caffe.

    The backward pass needs no data layer's input to be right, so the net runs on what its Input layers hold.
    """
    program = shutil.which("caffe")
    if program is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "net.prototxt"
        write_text(model, training_net(net))
        command = [program, "time", f"-model={model}", f"-iterations={iterations}", "-phase=TRAIN"]
        log = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    passes = [re.search(rf"Average {which} pass: ([0-9.]+) ms", log) for which in ("Forward", "Backward")]
    if None in passes:
        raise RuntimeError(f"caffe time gave no averages:\n{log[-2000:]}")
    return sum(float(found.group(1)) for found in passes if found)
