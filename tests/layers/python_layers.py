"""A layer as pycaffe's users write them, for the conformance suite."""

import recaffe


class Affine(recaffe.Layer):
    """y = x * w + param_str, one w for each column."""

    def setup(self, bottom, top):
        self.shift = float(self.param_str)
        self.blobs.add_blob(bottom[0].shape[1])

    def reshape(self, bottom, top):
        top[0].reshape(*bottom[0].data.shape)

    def forward(self, bottom, top):
        top[0].data[...] = bottom[0].data * self.blobs[0].data + self.shift

    def backward(self, top, propagate_down, bottom):
        if self.param_propagate_down[0]:
            self.blobs[0].diff[...] += (top[0].diff * bottom[0].data).sum(axis=0)
        if propagate_down[0]:
            bottom[0].diff[...] = top[0].diff * self.blobs[0].data
