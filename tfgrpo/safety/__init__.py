"""What keeps a poisoned or private trajectory from becoming a lesson: pure checks of texts, each in its own module.

`grammar` says which texts can be a lesson at all, `redaction` finds secrets and personal data in what the optimizer
reads, `outgoing` in what is exported or injected; `leaks` finds lessons that quote a single group. None of them can
tell good advice from bad: poison that is harmless to look at passes, and is for the gate and the live experiment to
find (docs/security.md).
"""
