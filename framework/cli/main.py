"""``recaffe``: the command line's entry, its commands, and what becomes of errors.

Exit status: 0 done, 1 a user's mistake (one message), 2 wrong usage, 70 a fault of recaffe's (with a traceback),
130 interrupted, 141 nobody reads the output any more.
"""

import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from ..errors import RecaffeError, nearest
from .attention import attention
from .device_query import device_query
from .flags import normalise
from .generate import generate
from .logs import logging_to_stderr
from .test import test
from .time import time
from .train import train
from .translate import translate
from .upgrade import upgrade_net_proto_binary, upgrade_net_proto_text, upgrade_solver_proto_text

USER_ERROR, FAULT, INTERRUPTED, BROKEN_PIPE = 1, 70, 130, 141


class Commands(click.Group):
    """Commands in the order they were added; a name that is none of theirs is answered with the nearest."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in self.commands:
            close = nearest(args[0], self.commands)
            hint = f"did you mean {close[0]!r}?" if close else f"the commands are {', '.join(self.commands)}."
            ctx.fail(f"there is no command {args[0]!r}; {hint}")
        return super().resolve_command(ctx, args)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="recaffe", message="%(prog)s %(version)s")
@click.option(
    "--minloglevel",
    type=click.IntRange(0, 3),
    default=0,
    envvar="GLOG_minloglevel",
    show_default=True,
    help="Least severity of the log lines shown: 0 all, 1 warnings, 2 errors.",
)
@click.pass_context
def recaffe_command(context: click.Context, minloglevel: int) -> None:
    """Train, test, time and use nets written as prototxt.

    Flags are Caffe's, as -flag value, -flag=value, --flag value or --flag=value.
    """
    context.obj = context.with_resource(logging_to_stderr(minloglevel))


for command in (
    train,
    test,
    time,
    generate,
    translate,
    attention,
    device_query,
    upgrade_net_proto_text,
    upgrade_net_proto_binary,
    upgrade_solver_proto_text,
):
    recaffe_command.add_command(command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line ``arguments`` (the program's own by default); gives the exit status."""
    try:
        words = normalise(sys.argv[1:] if arguments is None else arguments)
        with recaffe_command.make_context("recaffe", words) as context:
            recaffe_command.invoke(context)
    except click.exceptions.Exit as ending:
        return ending.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except RecaffeError as error:
        show_error(str(error))
        return USER_ERROR
    except BrokenPipeError:
        # What is left in the buffers has no reader: the interpreter must not try to write it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
        return BROKEN_PIPE
    except MemoryError as error:
        show_error(f"out of memory{f': {error}' if str(error) else ''}; a smaller batch_size needs less")
        return USER_ERROR
    except KeyboardInterrupt:
        show_error("interrupted")
        return INTERRUPTED
    except Exception:
        sys.excepthook(*sys.exc_info())
        show_error("this is a fault of recaffe or of a layer of yours; if of recaffe, please report the lines above")
        return FAULT
    return 0


def show_error(message: str) -> None:
    """One message on standard error."""
    click.secho("recaffe: error: ", fg="red", bold=True, nl=False, err=True)
    click.echo(message, err=True)
