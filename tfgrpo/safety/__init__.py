"""What keeps a poisoned or private trajectory from becoming a lesson: pure checks of texts, each in its own module.

`grammar` says which texts can be a lesson at all, `redaction` takes secrets and personal data out of what the optimizer
reads, `leaks` finds lessons that quote a single group. None of them can tell good advice from bad: poison that is
harmless to look at passes, and is for the gate and the live experiment to find (docs/security.md).
"""
