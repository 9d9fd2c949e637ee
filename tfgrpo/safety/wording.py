"""What the words of a lesson may not hold, as patterns with the reason each gives.

They look at the form of a text and at a few phrases of attacks, in English only. Each must let ordinary advice pass:
`docs/security.md` says how often they do not.
"""

from __future__ import annotations

import re
from typing import Final

_ENDINGS: Final = (
    "com|org|net|edu|gov|mil|int|info|biz|io|ai|co|dev|app|xyz|online|site|top|club|shop|eu|us|uk|de|fr|nl|ch|ru|cn|jp"
    "|br|onion|local|internal|lan|example|invalid|test"
)
_INSTRUCTIONS: Final = (
    r"(?:instructions?|directives?|guidelines?|rules|polic(?:y|ies)|prompts?|guardrails?|safeguards?|safety"
    r"|restrictions?)"
)
_OVERRIDES: Final = r"(?:ignor|disregard|forget|overrid|bypass|overrul|supersed|circumvent|violat|disobey|defy)\w*"
_OBEY: Final = r"(?:obey|follow|execute|comply with|act on|carry out)"
_ORDERS: Final = r"(?:instructions?|orders?|commands?|directives?|requests?|prompts?)"
_SAYS: Final = r"(?:tells?|says?|wants?|asks?|demands?|instructs?|orders?|requests?)"
_READ: Final = (
    r"(?:tool (?:results?|outputs?|responses?)|(?:web ?)?pages?|web ?sites?|e-?mails?|transcripts?|search results?"
    r"|(?:base ?64|encoded|hidden|decoded)(?: \w+)?|retrieved (?:\w+ )?(?:texts?|documents?|content))"
)
"""What others write into: nothing in it is an order."""


def _near(first: str, *rest: str | int) -> str:
    """Return the pattern of words in this order, each number being how many others may stand between."""
    pairs = zip(rest[::2], rest[1::2], strict=True)
    return rf"\b{first}\b" + "".join(rf"\W+(?:\w+\W+){{0,{most}}}?{words}\b" for most, words in pairs)


_PATTERNS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("a code fence", ("```", "~~~")),
    # Two closing braces in a row end nested LaTeX groups; two opening ones are a template's.
    ("a template's braces", (r"\{\{", r"\{%", r"\{#", "<%", r"\$\{")),
    (
        "a marker of messages",
        (r"<\|[\w ]+\|>", r"\[/?(?:INST|SYS|SYSTEM|USER|ASSISTANT|TOOL)\]", "<<<", ">>>", "</?SYS>>", "^#+ "),
    ),
    ("a tag", (r"<\s?/?\s?[a-z][\w:-]*(?:\s+[\w-]+\s*=[^<>]*)?\s*/?>", "&lt;/?[a-z]", "<!--", r"<!\[")),
    ("the form of an entry", (r"^\s*\[e\d+\]",)),
    ("JSON of an answer", (r"\"(?:operations?|ids|lessons?|role|tool_calls|function_call)\"\s*:",)),
    ("an escape", (r"\\u\{?[0-9a-f]{4}", r"\\x[0-9a-f]{2}\b", r"&#x?\w+;?", r"&[a-z]{2,8};", "(?:%[0-9a-f]{2}){2,}")),
    ("a word spaced out", (r"(?<![^\s\"'(])(?:[^\W\d_][ .*_|-]){4,}[^\W\d_](?!\w)",)),
    (
        "encoded text",
        (
            r"(?<![a-z0-9+/])(?=[a-z0-9+/]*\d)(?=[a-z0-9+/]*(?-i:[A-Z]))[a-z0-9+/]{6,}={1,2}(?!\w)",
            r"\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d[0-9a-f]*\d)[0-9a-f]{14,}\b",
            r"\b(?=[a-z]*\d+[a-z]+\d+[a-z]+\d+[a-z])(?=\w*(?-i:[A-Z]))(?=\w*(?-i:[a-z]))[a-z0-9]{12,}\b",
        ),
    ),
    (
        "a URL",
        (r"\b[a-z][a-z0-9+.-]{1,20}://", r"\bwww\.", r"\bhxxps?\b", r"\b(?:mailto|javascript|file):\S", r"\bdata:\w+/"),
    ),
    ("a link", (r"(?<!\\)\]\([^)\s]", r"(?:^|[\s(\"'])//\w")),
    (
        "an address",
        (r"\S@\w[\w-]*\.\w", r"\b(?:\d{1,3}\.){3}\d{1,3}\b", r"\b(?:[0-9a-f]{1,4}:){4,}[0-9a-f:]"),
    ),
    (
        "a host",
        (
            r"\blocalhost\b",
            rf"\b[\w-]+\.(?:{_ENDINGS})\b(?!\()",
            r"\b[a-z][\w-]*\.[a-z]{2,}/\w",
            r"\b(?:\[dot\]|\(dot\)|dot) (?:com|org|net|io)\b",
        ),
    ),
    (
        "a path",
        (
            r"(?:^|[\s\"'`(=:])(?:~|\.{1,2})?/[a-z_.][\w.-]*",
            r"(?:^|[\s\"'`(])\.{1,2}/",
            r"\b[a-z]:\\(?:[a-z]+\\|users)",
            r"\b[\w-]+/[\w./-]*\w\.[a-z]{2,4}\b",
        ),
    ),
    (
        "a command",
        (r"\b(?:curl|wget|sudo|chmod|powershell|bash -c|rm -rf|os\.system|subprocess)\b", r"\b(?:eval|exec)\("),
    ),
    ("a role", (r"(?:^|[.;!?\"'`\]])\s*(?:system|assistant|user|developer|human|tool)\s*:",)),
    (
        "talk of secrets",
        (
            r"\b(?:api[ _-]?keys?|pass(?:word|phrase|code)s?|credentials?|secrets?|(?:private|ssh) keys?)\b",
            r"\b(?:access|auth|bearer|session|security|authentication|login) (?:tokens?|cookies?)\b",
            r"\b(?:environment variables?|one-time codes?|card numbers?)\b",
        ),
    ),
    (
        "talk of the system prompt",
        (r"\b(?:system|developer|initial|hidden|original) (?:prompts?|messages?|instructions?)\b",),
    ),
    (
        "an order to override instructions",
        (
            rf"\b{_OVERRIDES}\W+(?!to\b)(?:\w+\W+){{0,4}}?{_INSTRUCTIONS}\b",
            r"\b(?:ignore|disregard|forget) (?:everything|all|anything|what) (?:\w+ ){0,2}(?:above|before|earlier)\b",
            r"\b(?:ignore|disregard|forget) (?:everything|all|anything|what) (?:\w+ ){0,3}(?:said|told)\b",
            r"\bjail ?break",
            r"\b(?:developer|god|admin|debug) mode\b",
            r"\byou are now\b",
            r"\bpretend (?:to be|you)\b",
            r"\bnew instructions\b",
            r"\b(?:never|not|n't|without) (?:tell|reveal|mention|inform|ask)(?:ing)?(?: \w+){0,3} users?\b",
            rf"\b(?:precedence|priority) over (?:\w+ ){{0,3}}{_INSTRUCTIONS}\b",
            rf"\b{_INSTRUCTIONS} (?:\w+ ){{0,2}}(?:no longer|(?:do|does|did)(?: not|n't)) (?:apply|count|hold|matter)",
        ),
    ),
    (
        "an order to obey what was read",
        (
            _near(_OBEY, 4, _ORDERS, 1, "(?:in|inside|within|on|from|of|by|that)", 3, _READ),
            _near("(?:do|act|follow|answer)", 1, "(?:as|what|whatever|everything)", 3, _READ, 4, _SAYS),
            _near("(?:obey|comply with|execute)", 3, _READ),
            _near(_READ, 9, "(?:obey|execute|act on|comply with) (?:it|them)"),
            _near(_READ, 9, "(?:do|follow) (?:as|what|whatever) (?:it|they|is|that)"),
        ),
    ),
)

RULES: Final = tuple((reason, re.compile("|".join(patterns), re.IGNORECASE)) for reason, patterns in _PATTERNS)
"""Reasons, each as it ends the sentence "it holds ...", with what they are given for."""
