"""recaffe: Caffe again, in Python.

Nets defined in prototxt, blobs on NumPy or CuPy, solvers run from the command line, new layers as Python classes.
"""

from importlib import import_module

from .framework.backend import set_device, set_mode_cpu, set_mode_gpu, set_random_seed
from .framework.blob import Blob
from .framework.errors import RecaffeError
from .framework.layer import Layer, add_layer_source, register, registered_types
from .framework.net import Net
from .framework.solver import Solver, get_solver
from .proto import TEST, TRAIN

__version__ = "0.1.0"

# the layers that come with recaffe are imported when the first net is built: `import recaffe` stays quick
add_layer_source(lambda: import_module(".layers", __name__))

__all__ = [
    "TEST",
    "TRAIN",
    "Blob",
    "Layer",
    "Net",
    "RecaffeError",
    "Solver",
    "get_solver",
    "register",
    "registered_types",
    "set_device",
    "set_mode_cpu",
    "set_mode_gpu",
    "set_random_seed",
]
