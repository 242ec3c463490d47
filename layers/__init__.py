"""The layers that come with recaffe: one file per prototxt type, in families; importing registers them."""

from importlib import import_module

FAMILIES = ("activation", "attention", "common", "data", "loss", "normalization", "recurrent", "vision")

for _family in FAMILIES:
    import_module(f"{__name__}.{_family}")
