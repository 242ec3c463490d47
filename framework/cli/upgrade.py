"""Caffe's three upgrade tools: old nets and solvers written anew in today's form."""

import logging

import click

from ...proto import read_net, read_net_binary, read_solver, write_binary, write_text

log = logging.getLogger("recaffe")

source = click.argument("source", metavar="IN")
target = click.argument("target", metavar="OUT")


@click.command("upgrade_net_proto_text")
@source
@target
def upgrade_net_proto_text(source: str, target: str) -> None:
    """Upgrade a net in text (prototxt)."""
    write_text(target, read_net(source))
    log.info("Wrote upgraded NetParameter text proto to %s", target)


@click.command("upgrade_net_proto_binary")
@source
@target
def upgrade_net_proto_binary(source: str, target: str) -> None:
    """Upgrade a net in binary (.caffemodel)."""
    write_binary(target, read_net_binary(source))
    log.info("Wrote upgraded NetParameter binary proto to %s", target)


@click.command("upgrade_solver_proto_text")
@source
@target
def upgrade_solver_proto_text(source: str, target: str) -> None:
    """Upgrade a solver in text (prototxt)."""
    write_text(target, read_solver(source))
    log.info("Wrote upgraded SolverParameter text proto to %s", target)
