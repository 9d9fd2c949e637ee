"""Poisoned transcripts, each with what must come of it.

`cases` holds the texts, `drive` takes them through the product: recorded by a real proxy, labelled by its own API,
learned from by `tfgrpo train` with an optimizer that falls for every one of them.
"""
