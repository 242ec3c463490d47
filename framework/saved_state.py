"""Nested states (dicts, lists, numbers, strings, arrays) as one JSON text and a list of arrays, and back."""

import json
from typing import Any

import numpy as np

ARRAY = "__array__"  # {"__array__": 3} stands for array number 3


def pack(state: Any) -> tuple[str, list[np.ndarray]]:
    """The JSON text of ``state``, in which arrays are numbers, and the arrays."""
    arrays: list[np.ndarray] = []

    def replace(value: Any) -> Any:
        if isinstance(value, dict):
            return {str(key): replace(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [replace(item) for item in value]
        if isinstance(value, np.ndarray):
            arrays.append(value)
            return {ARRAY: len(arrays) - 1}
        return value.item() if isinstance(value, np.generic) else value

    return json.dumps(replace(state)), arrays


def unpack(text: str, arrays: list[np.ndarray]) -> Any:
    """The state that ``pack`` gave ``text`` and ``arrays`` for; tuples have become lists."""

    def restore(value: dict[str, Any]) -> Any:
        return arrays[value[ARRAY]] if ARRAY in value else value

    return json.loads(text, object_hook=restore)
