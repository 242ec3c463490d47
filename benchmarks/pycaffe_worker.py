"""A net trained through pycaffe's interface, in a process of its own: ``pycaffe_worker.py MODULE NET.prototxt``.

MODULE is ``caffe`` or ``recaffe``, whose interfaces are the same here.  Answers as ``serve`` does.  It runs under
Caffe's own interpreter, so it needs nothing but MODULE, and speaks the Python of that time.
"""

import importlib
import sys

import numpy as np
from serve import serve  # beside this script, which is in no package


def main():
    """Serve the parent process."""
    caffe = importlib.import_module(sys.argv[1])
    net = caffe.Net(sys.argv[2], caffe.TRAIN)
    net.blobs["x"].data[...] = np.random.default_rng(0).standard_normal(net.blobs["x"].data.shape)
    net.blobs["cont"].data[...] = 1
    net.blobs["cont"].data[0] = 0
    net.blobs["y"].diff[...] = 1

    def iterate():
        net.clear_param_diffs()
        net.forward()
        net.backward()

    serve(iterate)


if __name__ == "__main__":
    main()
