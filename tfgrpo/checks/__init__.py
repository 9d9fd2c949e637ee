"""What graders compare by. `text` is imported; the others are programs, each run in a process of its own by `graders`.

They import no more than they need, for a process that had to be killed is started anew.
"""
