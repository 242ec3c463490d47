"""The errors that a user sees: one class, raised with a message that says what to do."""

from ..proto.errors import ParseError, RecaffeError, nearest


class LayerError(RecaffeError):
    """A layer cannot work with what it was given; the message names the layer, its type and its place."""


__all__ = ["LayerError", "ParseError", "RecaffeError", "nearest"]
