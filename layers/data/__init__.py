"""Data layers: blobs from databases, files, memory and fillers; importing registers them."""

from . import (
    data,
    dummy_data,
    hdf5_data,
    hdf5_output,
    image_data,
    input,
    memory_data,
    pair_data,
    sequence_data,
    series_data,
    text_data,
)

__all__ = [
    "data",
    "dummy_data",
    "hdf5_data",
    "hdf5_output",
    "image_data",
    "input",
    "memory_data",
    "pair_data",
    "sequence_data",
    "series_data",
    "text_data",
]
