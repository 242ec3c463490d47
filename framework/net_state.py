"""Which layers of a prototxt belong to a net: phases, levels, stages, include and exclude rules."""

from ..proto import NetParameter, NetState, NetStateRule
from .errors import LayerError
from .layer import place


def filter_layers(param: NetParameter, wheres: list[str]) -> tuple[NetParameter, list[str]]:
    """``param`` with the layers that its ``state`` keeps, and their places in the text.

    A layer stays unless it has include rules and none holds, or one of its exclude rules holds.
    """
    kept = NetParameter()
    kept.CopyFrom(param)
    del kept.layer[:]
    kept_wheres = []
    for layer, where in zip(param.layer, wheres, strict=True):
        if layer.include and layer.exclude:
            raise LayerError(f"{place(layer, where)}: give include rules or exclude rules, not both")
        if layer.include:
            stays = any(rule_holds(rule, param.state) for rule in layer.include)
        else:
            stays = not any(rule_holds(rule, param.state) for rule in layer.exclude)
        if stays:
            kept.layer.add().CopyFrom(layer)
            kept_wheres.append(where)
    return kept, kept_wheres


def rule_holds(rule: NetStateRule, state: NetState) -> bool:
    """Whether every condition that ``rule`` gives is met by ``state``."""
    if rule.HasField("phase") and rule.phase != state.phase:
        return False
    if rule.HasField("min_level") and state.level < rule.min_level:
        return False
    if rule.HasField("max_level") and state.level > rule.max_level:
        return False
    stages = set(state.stage)
    return stages.issuperset(rule.stage) and stages.isdisjoint(rule.not_stage)
