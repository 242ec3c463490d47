"""Flags as Caffe's users write them, brought into the form that click reads.

``-solver x``, ``-solver=x``, ``--solver x`` and ``--solver=x`` are the same flag, dashes and underscores inside
a name are the same, a flag may stand before the command, and the flags of Caffe's logging library are taken.
"""

import re
from collections.abc import Iterable

FLAG = re.compile(r"--?(v|[A-Za-z][\w-]+)(=.*)?", re.DOTALL)
LOG_SWITCHES = {"logtostderr", "alsologtostderr", "colorlogtostderr", "log-prefix"}
LOG_VALUES = {"v", "vmodule", "stderrthreshold", "logbuflevel", "logbufsecs", "max-log-size"}
WITHOUT_VALUE = {"help", "version", "cpu"}
OF_ALL_COMMANDS = {"help", "version", "minloglevel"}


def normalise(arguments: Iterable[str]) -> list[str]:
    """The arguments as click reads them: ``--flag`` or ``--flag=value``, behind the command they belong to."""
    general: list[str] = []
    before_command: list[str] = []
    command: list[str] = []
    waiting = iter(arguments)
    for word in waiting:
        match = FLAG.fullmatch(word)
        if match is None:
            command += [word, *before_command]
            before_command = []
            continue
        name, value = match[1].replace("_", "-"), match[2]
        if name in LOG_SWITCHES or name.removeprefix("no") in LOG_SWITCHES:
            continue
        if value is None and name not in WITHOUT_VALUE:
            following = next(waiting, None)
            value = "" if following is None else f"={following}"
        if name in LOG_VALUES:
            continue
        if name == "minloglevel" or (name in OF_ALL_COMMANDS and not command):
            general.append(f"--{name}{value or ''}")
        else:
            (command or before_command).append(f"--{name}{value or ''}")
    return general + command + before_command
