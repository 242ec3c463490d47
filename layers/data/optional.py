"""Libraries that only the data layers need: imported when first used."""

from importlib import import_module
from typing import Any

from ...framework.errors import RecaffeError


def require(module: str, purpose: str, install: str = "'recaffe[data]'") -> Any:
    """The module ``module``, or an error that says how to get it."""
    try:
        return import_module(module)
    except ImportError:
        raise RecaffeError(
            f"{purpose} needs the Python package {module.partition('.')[0]!r}: pip install {install}"
        ) from None


def refuse_other_options(block: str, param: Any, known: frozenset[str]) -> None:
    """Raise RecaffeError where ``param`` sets an option outside ``known``: it would change the data unseen."""
    strange = [
        field.name
        for field, value in param.ListFields()
        if field.name not in known and (field.is_repeated or value != field.default_value)
    ]
    if strange:
        raise RecaffeError(
            f"{block} sets {', '.join(strange)}: an option of a fork or of an old version of Caffe that this"
            f" layer does not have (known: {', '.join(sorted(known))}; scaling, cropping, mirroring and the mean"
            " belong in transform_param)"
        )
