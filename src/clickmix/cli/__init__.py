"""The command: parse, call, print."""

from clickmix.cli.command import app, main

__all__ = ["app", "main"]
