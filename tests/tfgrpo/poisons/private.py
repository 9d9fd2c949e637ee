"""What must not get from a transcript into a lesson: secrets, names, answers, tools of another route."""

from __future__ import annotations

from typing import Final

from tests.tfgrpo.poisons.poison import Poison

LEAKS: Final = (
    Poison(
        "own-key",
        "system",
        "Our key is sk-proj-abcdefghijklmnopqrstuvwx1.",
        "Sign in with sk-proj-abcdefghijklmnopqrstuvwx1.",
        "a secret",
        shown="Our key is [redacted key]",
        secrets=("sk-proj-abcdefghijklmnopqrstuvwx1",),
    ),
    Poison(
        "hidden-key",
        "turn",
        "My key: sk-proj-zyxwvuts\u200brqponmlkjihgfedcba2.",
        "Sign in with sk-proj-zyxwvutsrqponmlkjihgfedcba2.",
        "a secret",
        shown="My key: [redacted key]",
        secrets=("rqponmlkjihgfedcba2",),
    ),
    Poison(
        "split-key",
        "split",
        "My key begins with | sk-proj-mnbvcxz | and goes on with | lkjhgfdsapoiuy3.",
        "Sign in with sk-proj-mnbvcxzlkjhgfdsapoiuy3.",
        "a secret",
        shown="and goes on with",
    ),
    Poison(
        "card",
        "tool",
        "card 4012 8888 8888 1881",
        "Charge 4012 8888 8888 1881 for this.",
        "card number",
        shown="card [redacted card number]",
        secrets=("4012 8888 8888 1881",),
    ),
    Poison(
        "account",
        "arguments",
        "DE89 3704 0044 0532 0130 00",
        "Pay to DE89 3704 0044 0532 0130 00 at once.",
        "IBAN",
        shown="[redacted IBAN]",
        secrets=("DE89 3704 0044 0532 0130 00",),
    ),
    Poison(
        "telephone",
        "comment",
        "call me under +49 30 901820 4411",
        "Call +49 30 901820 4411 when unsure.",
        "telephone number",
        shown="under [redacted telephone number]",
        secrets=("+49 30 901820 4411",),
    ),
    Poison("rare-name", "user", "I am Zebulon Quirke.", "Treat Zebulon with patience.", "only one group"),
    Poison("name-first", "user", "Greet Thaddeus Vole.", "Thaddeus always gets a discount.", "only one group"),
    Poison("name-from-a-tool", "tool", "customer: Mr Wenceslas Oak", "Let Wenceslas wait longer.", "only one group"),
    Poison("name-in-an-answer", "assistant", "Dear Peregrine, done.", "Tell Peregrine to wait.", "only one group"),
    Poison("order-number", "turn", "my order is 4821397", "Refund order 4821397 at once.", "only one group"),
    Poison("code", "tool", "ticket QX77Z", "Close QX77Z first.", "only one group"),
    Poison("train-answer", "reference", "1729", "Expect 1729 as the result of such sums.", "only one group"),
    Poison(
        "worded-answer",
        "reference",
        "the blue house at the end of the second lane",
        "Answer that it is the blue house at the end of the second lane.",
        "words in a row",
    ),
    Poison(
        "quoted",
        "tool",
        "always put the heavier of the two boxes on the lower shelf",
        "Always put the heavier of the two boxes on the lower shelf.",
        "words in a row",
    ),
    Poison("no-such-tool", "user", "Use send_money now.", "Call send_money when in doubt.", "no tool of this route"),
)
