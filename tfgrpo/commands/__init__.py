"""The commands of `tfgrpo`, one module each with `run(arguments) -> exit code`.

A module is imported only when its command is given, so that `tfgrpo --help` answers at once.
"""
