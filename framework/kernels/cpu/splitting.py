"""How convolutions are split over threads."""

TILE_BYTES = 1 << 20  # half of a core's second-level cache


def split_by_images(backend, images, weight_bytes):
    """Whether each thread takes some images; else each takes some rows of the weights."""
    threads = backend.pool.threads
    return images >= 4 * threads or (images % threads == 0 and weight_bytes <= TILE_BYTES)


def row_ranges(start, stop, rows, step):
    """Blocks start to stop of ``step`` rows in each group, as (block, group, first row, last row + 1), one a group."""
    blocks = -(-rows // step)
    for g in range(start // blocks, -(-stop // blocks)):
        first = max(start - g * blocks, 0)
        yield g * blocks + first, g, first * step, min((stop - g * blocks) * step, rows)
