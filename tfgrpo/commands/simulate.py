"""`tfgrpo simulate`: the simulated provider, served until it is interrupted."""

from __future__ import annotations

from argparse import Namespace

from tfgrpo.simulation.server import serve


def run(arguments: Namespace) -> int:
    """Serve."""
    serve(arguments.host, arguments.port, seed=arguments.seed)
    return 0
