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
_OVERRIDES: Final = r"(?:ignor|disregard|forget|overrid|bypass|overrul|supersed|circumvent|violat)\w*"

_PATTERNS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("a code fence", ("```", "~~~")),
    # Two closing braces in a row end nested LaTeX groups; two opening ones are a template's.
    ("a template's braces", (r"\{\{", r"\{%", r"\{#", "<%", r"\$\{")),
    (
        "a marker of messages",
        (r"<\|[\w ]+\|>", r"\[/?(?:INST|SYS|SYSTEM|USER|ASSISTANT|TOOL)\]", "<<<", ">>>", "</?SYS>>", "^#+ "),
    ),
    ("a tag", (r"</?[a-z][\w:-]*(?:\s+[\w-]+\s*=[^<>]*)?\s*/?>", "&lt;/?[a-z]")),
    (
        "a URL",
        (r"\b[a-z][a-z0-9+.-]{1,20}://", r"\bwww\.", r"\bhxxps?\b", r"\b(?:mailto|javascript|file):\S", r"\bdata:\w+/"),
    ),
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
        ),
    ),
)

RULES: Final = tuple((reason, re.compile("|".join(patterns), re.IGNORECASE)) for reason, patterns in _PATTERNS)
"""Reasons, each as it ends the sentence "it holds ...", with what they are given for."""

TOOL: Final = re.compile(r"\b[a-z]{2,}(?:_[a-z0-9]{2,})+\b|\b[a-z]{3,}(?:[A-Z][a-z0-9]+)+\b")
"""What is spelled like the name of a tool: small letters with underscores or capitals between them."""
