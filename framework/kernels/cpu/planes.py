"""Images as padded planes, in which what windows see under one of their elements is one run of numbers.

A padded plane holds the rows that windows see, filled up beyond the border, and split by the phases of the
stride: padded pixel (h, w) stands at [h % stride_h, w % stride_w, h // stride_h, w // stride_w].  So what all
windows see under their element (i, j) is one run from the place of (i, j) on, with rows as long as those of a
phase.  Outputs of such runs have rows of that length too ("wide"), with meaningless numbers beyond their own.

A block (n0, n1, c0, c1) is images n0 to n1, channels c0 to c1; a layout is (rows, columns, stride_h, stride_w).
"""

from .rows import compiled, copy_row, shift_row, unsigned


@compiled
def pad_planes(images, planes, block, corner, layout, border):
    """planes (n, c, stride_h, stride_w, rows, columns) of a block of images (N, C, H, W).

    The padded pixel (0, 0) is the pixel ``corner``, which may lie outside of the image; outside is ``border``.
    """
    flat = images.reshape(-1)
    _, channels, height, width = images.shape
    n0, n1, c0, c1 = block
    top, left = corner
    rows, columns, stride_h, stride_w = layout
    size = rows * columns
    plane = 0
    w_start, w_stop = max(0, left), min(width, left + columns * stride_w)
    for n in range(n0, n1):
        for c in range(c0, c1):
            for q in range(unsigned(plane), unsigned(plane + stride_h * stride_w * size)):
                planes[q] = border
            for h in range(max(0, top), min(height, top + rows * stride_h)):
                s = ((n * channels + c) * height + h) * width
                t = plane + (h - top) % stride_h * stride_w * size + (h - top) // stride_h * columns
                if stride_w == 1:
                    copy_row(flat, unsigned(s + w_start), planes, unsigned(t + w_start - left), w_stop - w_start)
                else:
                    for phase in range(stride_w):
                        first = w_start + (phase - w_start + left) % stride_w
                        t_phase = t + phase * size + (first - left) // stride_w
                        for q in range((w_stop - first + stride_w - 1) // stride_w):
                            planes[unsigned(t_phase + q)] = flat[unsigned(s + first + q * stride_w)]
            plane += stride_h * stride_w * size


@compiled
def place_rows(wide, columns, images, block, rows, corner, strides, bias):
    """images (N, C, H, W) at the pixel ``corner`` and every stride from there on = wide + bias.

    wide is (c, n, rows x columns, ...); what would lie outside of an image is left out.
    """
    source, target = wide.reshape(-1), images.reshape(-1)
    _, channels, height, width = images.shape
    n0, n1, c0, c1 = block
    (top, left), (stride_h, stride_w) = corner, strides
    q_start = max(0, (-left + stride_w - 1) // stride_w)
    q_stop = min(columns, (width - left + stride_w - 1) // stride_w)
    for n in range(n0, n1):
        for c in range(c0, c1):
            value = bias[c]
            for r in range(rows):
                h = top + r * stride_h
                if 0 <= h < height:
                    s = ((c - c0) * wide.shape[1] + n - n0) * wide.shape[2] + r * columns + q_start
                    t = ((n * channels + c) * height + h) * width + left + q_start * stride_w
                    if stride_w == 1:
                        shift_row(source, unsigned(s), value, target, unsigned(t), q_stop - q_start)
                    else:
                        for q in range(q_stop - q_start):
                            target[unsigned(t + q * stride_w)] = source[unsigned(s + q)] + value


@compiled
def widen_rows(images, wide, columns, block, r0, r1):
    """wide (c, n, rows x columns, ...) = rows r0 to r1 of a block of images (N, C, H, W), zero beyond each row."""
    source, target = images.reshape(-1), wide.reshape(-1)
    _, channels, height, width = images.shape
    n0, n1, c0, c1 = block
    for q in range(unsigned(len(target))):
        target[q] = 0
    for c in range(c0, c1):
        for n in range(n0, n1):
            for r in range(r0, r1):
                s = ((n * channels + c) * height + r) * width
                t = ((c - c0) * wide.shape[1] + n - n0) * wide.shape[2] + (r - r0) * columns
                copy_row(source, unsigned(s), target, unsigned(t), width)
