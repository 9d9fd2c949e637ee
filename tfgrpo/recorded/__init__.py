"""Traffic that something else recorded: files of it become exchanges of ours, so that a set can be trained on them.

`formats` read one line of each format, `placing` finds out which exchanges are one trajectory, `ours` writes and reads
our own export. Nothing here knows the live path.
"""
