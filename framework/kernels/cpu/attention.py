"""Attention of one stream and head at a time, a block of queries after the other, all in the cache.

What the products read is copied first to rows of whole vectors, queries times scale / ln 2: the softmax is then of
powers of two.
"""

import numpy as np

from .attention_rows import copy_numbers, fill, hide, product_sum, score_slopes, softmax_row, turn_square
from .elementwise import GOLDEN_GAMMA, fill_uniform
from .exp2 import LN2
from .jobs import shared
from .rows import compiled, unsigned
from .small_products import multiply
from .splitting import TILE_BYTES
from .tiles import VECTOR_BYTES

LOG2_E = 1 / LN2
MOST_QUERIES = 48  # of a block: whole tiles of 6 or 8 rows
PARTS = 4  # of the work, for each thread, where streams and heads are fewer


def attention_forward(backend, q, k, v, scale, visible, dropout, context, log_sums):
    """context = softmax(scale q k^T) v over the keys that each query sees; log_sums = log sum exp(scale q k^T)."""
    parts, pairs = query_parts(backend, q), q.shape[1] * q.shape[2]
    options = (q.dtype.type(scale * LOG2_E), *edges(visible, q.dtype), *drop_numbers(dropout, q.dtype))
    backend.share(
        forward_pairs, pairs * parts, cost(q, k, v),
        parts, q, k, v, *options, context, log_sums,
    )  # fmt: skip


def attention_backward(
    backend, q, k, v, scale, visible, dropout, context, log_sums, d_context, dq, dk, dv
):  # fmt: skip
    """The gradients of ``attention_forward``, from its arguments and results; dq, dk, dv are overwritten."""
    parts, pairs = query_parts(backend, q), q.shape[1] * q.shape[2]
    options = (q.dtype.type(scale * LOG2_E), *edges(visible, q.dtype), *drop_numbers(dropout, q.dtype))
    sums = [dk[None], dv[None]]
    if parts > 1:  # each part of the queries has gradients of its own for all keys
        sums = [backend.scratch(f"attention.{i}", (parts, *x.shape), x.dtype) for i, x in enumerate((dk, dv))]
    backend.share(
        backward_pairs, pairs * parts, 2.5 * cost(q, k, v),
        parts, q, k, v, *options, context, log_sums, d_context, dq, *sums,
    )  # fmt: skip
    if parts > 1:
        np.sum(sums[0], axis=0, out=dk)
        np.sum(sums[1], axis=0, out=dv)


def query_parts(backend, q):
    """In how many parts the queries of a stream and head are split, so that every thread has enough."""
    pairs, threads = q.shape[1] * q.shape[2], backend.pool.threads
    if threads == 1 or pairs >= PARTS * threads:
        return 1
    return min(-(-PARTS * threads // pairs), -(-len(q) // MOST_QUERIES))


def cost(q, k, v):
    """About the nanoseconds of a pass forward."""
    return q.size // q.shape[3] * len(k) * (0.02 * (q.shape[3] + v.shape[3]) + 1)


def edges(visible, dtype):
    """begin, end and mask; an empty mask where there is none."""
    mask = np.empty((0, 0), dtype) if visible.mask is None else visible.mask
    return visible.begin, visible.end, mask


def drop_numbers(dropout, dtype):
    """The ratio of dropout, what weights that are kept are multiplied with, and where the random numbers begin."""
    if dropout is None:
        return dtype.type(0), dtype.type(1), np.uint64(0)
    state = (dropout.stream + dropout.position * int(GOLDEN_GAMMA)) & ((1 << 64) - 1)
    return dtype.type(dropout.ratio), dtype.type(1 / (1 - dropout.ratio)), np.uint64(state)


@shared
def forward_pairs(
    _, start, stop, parts, q, k, v, scale, begin, end, mask, ratio, kept, state, context, log_sums
):  # fmt: skip
    """Units start to stop, each a part of the queries of one stream and head."""
    (T, N, heads, d), S, e = q.shape, len(k), v.shape[3]
    width, number = row_width(S, q), q.dtype.type
    block = block_size(T, width * q.itemsize)
    queries, scores, sums = aligned(block, d, q), aligned(block, width, q), aligned(block, padded(e, q), q)
    keys, values = aligned(d, width, q), aligned(S, padded(e, q), q)
    hidden, numbers, result = np.zeros(width, q.dtype), np.empty(width, q.dtype), np.empty(2, q.dtype)
    shares = np.empty(block, q.dtype)
    lanes = VECTOR_BYTES // q.itemsize
    for unit in range(start, stop):
        pair, part = unit // parts, unit % parts
        n, h = pair // heads, pair % heads
        if part == 0 or unit == start:
            copy_turned(k, n, h, keys)
            copy_rows(v, 0, S, n, h, number(1), values)
            hidden_scores(mask, n, hidden)
        last = T * (part + 1) // parts
        for first in range(T * part // parts, last, block):
            rows = min(block, last - first)
            low, high = keys_seen(begin, end, n, first, first + rows, q)
            wide = padded(high, q)
            copy_rows(q, first, rows, n, h, scale, queries)
            multiply(queries[:rows], keys[:, low:wide], scores[:, low:], False)
            for r in range(rows):
                t = first + r
                hide_unseen(scores, r, low, wide, begin[t, n], end[t, n], hidden, len(mask) > 0)
                softmax_row(scores, r * width + low, (wide - low) // lanes, result)
                shift, total = result
                log_sums[t, n, h] = (shift + np.log2(total)) * number(LN2) if total != 0 else np.inf
                shares[r] = 1 / total if total != 0 else 0
                if ratio > 0:
                    draw(numbers, low, high, ((t * N + n) * heads + h) * S, state)
                    drop(scores, r, low, high, numbers, ratio, kept)
            multiply(scores[:rows, low:high], values[low:high], sums, False)
            start_place, step = places(context, n, h)
            for r in range(rows):
                copy_numbers(sums, r * sums.shape[1], context, start_place + (first + r) * step, e, shares[r])


@shared
def backward_pairs(
    _, start, stop, parts, q, k, v, scale, begin, end, mask, ratio, kept, state,
    context, log_sums, d_context, dq, dk, dv,
):  # fmt: skip
    """Units start to stop, each a part of the queries of one stream and head; dk and dv have an axis of parts first."""
    (T, N, heads, d), S, e = q.shape, len(k), v.shape[3]
    width, number = row_width(S, q), q.dtype.type
    block = block_size(T, 2 * width * q.itemsize)
    scores, d_scores, d_queries = aligned(block, width, q), aligned(block, width, q), aligned(block, padded(d, q), q)
    queries, slopes = aligned(block, padded(d, q), q), aligned(block, padded(e, q), q)
    keys, keys_turned, values_turned = aligned(S, padded(d, q), q), aligned(d, width, q), aligned(e, width, q)
    d_keys, d_values = aligned(S, padded(d, q), q), aligned(S, padded(e, q), q)
    hidden, numbers = np.zeros(width, q.dtype), np.empty(width, q.dtype)
    lanes = VECTOR_BYTES // q.itemsize
    for unit in range(start, stop):
        pair, part = unit // parts, unit % parts
        n, h = pair // heads, pair % heads
        if part == 0 or unit == start:
            copy_rows(k, 0, S, n, h, number(LN2) * scale, keys)
            copy_turned(k, n, h, keys_turned)
            copy_turned(v, n, h, values_turned)
            hidden_scores(mask, n, hidden)
        context_start, context_step = places(context, n, h)
        d_keys[:] = 0
        d_values[:] = 0
        last = T * (part + 1) // parts
        for first in range(T * part // parts, last, block):
            rows = min(block, last - first)
            low, high = keys_seen(begin, end, n, first, first + rows, q)
            wide = padded(high, q)
            copy_rows(q, first, rows, n, h, scale, queries)
            copy_rows(d_context, first, rows, n, h, number(1), slopes)
            multiply(queries[:rows, :d], keys_turned[:, low:wide], scores[:, low:], False)
            multiply(slopes[:rows, :e], values_turned[:, low:wide], d_scores[:, low:], False)
            for r in range(rows):
                t = first + r
                hide_unseen(scores, r, low, wide, begin[t, n], end[t, n], hidden, len(mask) > 0)
                if ratio > 0:
                    draw(numbers, low, high, ((t * N + n) * heads + h) * S, state)
                    drop(d_scores, r, low, high, numbers, ratio, kept)
                slope = product_sum(slopes, r * slopes.shape[1], context, context_start + t * context_step, e)
                shift = log_sums[t, n, h] * number(LOG2_E)
                score_slopes(scores, d_scores, r * width + low, (wide - low) // lanes, shift, slope)
                if ratio > 0:
                    drop(scores, r, low, high, numbers, ratio, kept)
            multiply(d_scores[:rows, low:high], keys[low:high], d_queries, False)
            multiply(d_scores[:rows, low:high].T, queries[:rows], d_keys[low:], True)
            multiply(scores[:rows, low:high].T, slopes[:rows], d_values[low:], True)
            copy_back(d_queries, number(1), dq, first, rows, n, h)
        copy_back(d_keys, number(LN2), dk[part], 0, S, n, h)
        copy_back(d_values, number(1), dv[part], 0, S, n, h)


# which keys


@compiled
def keys_seen(begin, end, n, first, last, like):
    """The keys from the first (at a whole vector) to the last that one of the queries first to last sees."""
    low, high = np.int64(1) << 40, np.int64(0)
    for t in range(first, last):
        if begin[t, n] < end[t, n]:
            low, high = min(low, begin[t, n]), max(high, end[t, n])
    lanes = VECTOR_BYTES // like.itemsize
    return min(low, high) // lanes * lanes, high


@compiled
def hidden_scores(mask, n, hidden):
    """What to add to the scores of stream n: -inf where the mask is 0; without a mask nothing changes."""
    for s in range(len(mask)):
        hidden[s] = 0 if mask[s, n] != 0 else -np.inf


@compiled
def hide_unseen(scores, r, low, wide, begin, end, hidden, masked):
    """Make the scores of row r, from low to wide, -inf where the key is not seen."""
    line = r * scores.shape[1]
    if begin >= end:
        hide(scores, line, low, wide)
    else:
        if begin > low:
            hide(scores, line, low, begin)
        if end < wide:
            hide(scores, line, end, wide)
    if masked:
        for s in range(unsigned(low), unsigned(wide)):
            scores[r, s] += hidden[s]


@compiled
def draw(numbers, low, high, first, state):
    """numbers[i] = random number first + i behind ``state``, from low to high."""
    fill_uniform(numbers, state + unsigned(first) * GOLDEN_GAMMA, low, high)


@compiled
def drop(scores, r, low, high, numbers, ratio, kept):
    """Multiply row r by 0 where the random number is below ``ratio``, else by ``kept``; from low to high."""
    for i in range(unsigned(low), unsigned(high)):
        scores[r, i] *= kept if numbers[i] >= ratio else 0


# memory


@compiled
def padded(count, like):
    """``count`` rounded up to whole vectors of numbers as in ``like``."""
    lanes = VECTOR_BYTES // like.itemsize
    return -(-count // lanes) * lanes


@compiled
def row_width(S, like):
    """A row's numbers for S keys, one vector too many: rows a power of two apart would share few cache lines."""
    return padded(S, like) + VECTOR_BYTES // like.itemsize


@compiled
def block_size(T, row_bytes):
    """How many queries a block has, so that its rows stay in the cache."""
    return min(T, max(MOST_QUERIES // 6, min(MOST_QUERIES, TILE_BYTES // row_bytes)))


@compiled
def aligned(rows, columns, like):
    """A matrix of numbers as in ``like`` that begins where a vector does."""
    lanes = VECTOR_BYTES // like.itemsize
    memory = np.empty(rows * columns + lanes, like.dtype)
    first = -(memory.ctypes.data // like.itemsize) % lanes
    return memory[first : first + rows * columns].reshape(rows, columns)


@compiled
def places(x, n, h):
    """Where x[0, n, h] begins and how far on x[1, n, h] does, counted in numbers."""
    return (n * x.strides[1] + h * x.strides[2]) // x.itemsize, x.strides[0] // x.itemsize


@compiled
def copy_rows(x, first, rows, n, h, factor, target):
    """The first rows of target = factor x[first : first + rows, n, h], then zeros in each row."""
    columns, width = x.shape[3], target.shape[1]
    start, step = places(x, n, h)
    for r in range(rows):
        copy_numbers(x, start + (first + r) * step, target, r * width, columns, factor)
        fill(target, r, columns, width, 0)


@compiled
def copy_back(source, factor, x, first, rows, n, h):
    """x[first : first + rows, n, h] = factor times the first rows of source."""
    columns, width = x.shape[3], source.shape[1]
    start, step = places(x, n, h)
    for r in range(rows):
        copy_numbers(source, r * width, x, start + (first + r) * step, columns, factor)


@compiled
def copy_turned(x, n, h, target):
    """The first columns of target = x[:, n, h]^T, in squares as far as possible."""
    rows, columns, lanes = len(x), x.shape[3], VECTOR_BYTES // x.itemsize
    (start, step), width = places(x, n, h), target.shape[1]
    whole_rows, whole_columns = rows // lanes * lanes, columns // lanes * lanes
    for s in range(0, whole_rows, lanes):
        for i in range(0, whole_columns, lanes):
            turn_square(x, start + s * step + i, step, target, i * width + s, width)
    for s in range(rows):
        for i in range(whole_columns if s < whole_rows else 0, columns):
            target[i, s] = x[s, n, h, i]
