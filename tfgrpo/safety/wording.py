"""What the words of a lesson may not hold, as patterns with the reason each gives: places, markup, codes, and `talk`.

Each must let ordinary advice pass: `docs/security.md` says how often they do not.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from tfgrpo.safety import talk

_ENDINGS: Final = (
    "com|org|net|edu|gov|mil|int|info|biz|io|ai|co|dev|app|xyz|online|site|top|club|shop|eu|us|uk|de|fr|nl|ch|ru|cn|jp"
    "|br|onion|local|internal|lan|example|invalid|test|it|es|pl|au|ca|se|at|be|tk|ly|cc|tv|pw|gg|ml|me|icu|su"
)
_PATTERNS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("a code fence", ("```", "~~~", "'''", '"""')),
    # Two closing braces in a row end nested LaTeX groups; two opening ones are a template's.
    ("a template's braces", (r"\{\s?\{", r"\{%", "[{]#", "#[{]", "@[{]", "[{]!", "<%", r"\$\s?\{", r"%\(\w+\)s")),
    # A word in braces is filled in by a template; LaTeX has a command, an index or another brace before it.
    ("a template's field", (r"(?<![\w}\]_^\\{])\{[a-z_][a-z0-9_.]+\}",)),
    (
        "a marker of messages",
        (
            r"<\|[\w ]+\|>",
            r"\[/?(?:INST|SYS|SYSTEM|USER|ASSISTANT|TOOL)\]",
            "<<<",
            ">>>",
            "</?SYS>>",
            "^#+ ",
            r"[\u2039\u00ab\u27e8\u3008\u3010\u300c\u300e]\s?(?:system|assistant|developer|tool)\s?[\u203a\u00bb\u27e9\u3009\u3011\u300d\u300f]",
            r"\|\s*(?:role|system|assistant)\s*\|",
        ),
    ),
    ("a comment of code", (r"^\s*(?://|--|;;)\s", r"/\*|\*/")),
    ("a tag", (r"<\s?/?\s?[a-z][\w:-]*(?:\s+[\w-]+\s*=[^<>]*)?\s*/?>", "&lt;/?[a-z]", "<!--", r"<!\[")),
    ("the form of an entry", (r"^\s*\[e\d+\]",)),
    ("the mark of something redacted", (r"\[redacted\b",)),
    ("JSON of an answer", (r"\"(?:operations?|ids|lessons?|role|tool_calls|function_call)\"\s*:",)),
    (
        "an escape",
        (
            r"\\u\{?[0-9a-f]{4}",
            r"\\x(?:[0-9a-f]{2}\b|\d[0-9a-f])",
            r"&#x?\w+;?",
            r"&[a-z]{2,8};",
            "(?:%[0-9a-f]{2}){2,}",
        ),
    ),
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
        (
            r"\b[a-z][a-z0-9+.-]{1,20}://",
            r"\bwww\.",
            r"\bhxxps?\b",
            r"\b(?:mailto|javascript|file):\S",
            r"\bdata:\w+/",
            r"\bhttps?\s*:",
            r"\b(?:tel|sms):\s?\+?\d",
        ),
    ),
    ("a link", (r"(?<!\\)\]\([^)\s]", r"(?:^|[\s(\"'])//\w")),
    (
        "an address",
        (
            r"\S@\w[\w-]*\.\w",
            r"\S@localhost\b",
            r"\bat (?:gmail|hotmail|outlook|yahoo|proton(?:mail)?|icloud)\b",
            r"\b(?:\d{1,3}\.){3}\d{1,3}\b",
            r"\b(?:[0-9a-f]{1,4}:){4,}[0-9a-f:]",
            r"\b(?:fe80|fc00|fd[0-9a-f]{2}|2001)::?\w|(?<!\S)::1\b|\b0x[0-9a-f]{8}\b",
            r"\b\d{1,5} (?:(?-i:[A-Z])\w+ ){1,3}(?:street|avenue|road|boulevard|lane|drive)\b",
        ),
    ),
    (
        "a host",
        (
            r"\blocalhost\b",
            rf"\b[\w-]+\.(?:{_ENDINGS})\b(?!\()",
            r"\b[a-z][\w-]*\.[a-z]{2,}/\w",
            r"\b(?:\[dot\]|\(dot\)|dot) (?:com|org|net|io)\b",
            r"[a-z0-9]\s?[\[({]\s?(?:\.|dot)\s?[\])}]\s?[a-z]{2}",
            r"\bxn--\w|\w\.(?:рф|рус|онлайн|сайт|москва|укр|бг|中国|公司|网络|在线|网址|한국|भारत)(?!\w)",
            r"[a-z0-9][\u3002\uff61][a-z]{2}|[a-z0-9] \.(?:com|org|net|io)\b",
        ),
    ),
    (
        "a path",
        (
            r"(?:^|[\s\"'`(=:])(?:~|\.{1,2})?/[a-z_.][\w.-]*",
            r"(?:^|[\s\"'`(])\.{1,2}/",
            r"\b[a-z]:\\(?:[a-z]+\\|(?:users|windows|program|temp)\b)",
            r"\b[\w-]+/[\w./-]*\w\.[a-z]{2,4}\b",
            r"\b(?:etc|proc|usr|var|tmp)/\w|\bid_rsa\b|(?<![\w~])~root\b",
            r"(?:^|[\s\"'`(])\.(?:env|ssh|git|aws|bashrc|profile|npmrc|netrc|kube|docker)\b",
            r"(?<!\S)\\\\[\w.-]+\\(?!\\)\w|%(?-i:[A-Z]{3,})%|\$(?:HOME|PATH|USER|PWD|SHELL)\b(?!\$)",
        ),
    ),
    (
        "a command",
        (
            r"\b(?:curl|wget|sudo|chmod|powershell|bash -c|rm -rf|os\.system|subprocess)\b",
            r"\b(?:eval|exec)\(",
            r"\b(?:rm|mv|cp|dd|nc|ssh|scp|chown|kill|ls) -\w",
            r"\b(?:pip3?|npm|brew|apt(?:-get)?) install\b",
            r"\bpython3? -[cm]\b|\bnode -e\b|\bsh -c\b|\bos\.(?:remove|popen|unlink)\b|\bimport (?:os|socket)\b",
            r"\b(?:drop|truncate) table\b",
            r"\$\(\w[\w ./-]*\)(?![^$]*\$)",
            r"(?:&&|;|\|)\s*(?:rm|curl|sh|bash|ls|cat|nc)\b",
        ),
    ),
    (
        "a role",
        (
            r"(?:^|[.;!?\"'`\]*>(|-])\s*(?:system|assistant|user|developer|human|tool|instructions?)\s*[)\]*]{0,2}\s*:",
            r"\b(?:system|developer|admin\w*|operator) (?:says?|said|orders?|notes?|notice|override|update|alert)\s*:",
            r"(?:^|[.;!?])\s*(?-i:SYSTEM|ASSISTANT|DEVELOPER)\s+\W",
            r"(?:^|[.;!?])\s*\W{0,3}(?:system|assistant|developer)\W{0,3}\s*[\u2013\u2014]",
            r"(?:^|[.;!?])\s*(?:\*\*|__)(?:system|assistant|user|developer|tool)(?:\*\*|__)",
            r"\brole\s?[=:]\s?[\"']?(?:system|assistant|developer)\b",
        ),
    ),
    ("talk of secrets", talk.SECRETS),
    ("talk of the system prompt", talk.PROMPT),
    ("an order to override instructions", talk.OVERRIDES + talk.ELSEWHERE),
    ("an order to obey what was read", talk.OBEDIENCE),
)


@cache
def rules() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return reasons, each as it ends the sentence "it holds ...", with what they are given for.

    Made when first asked for: it takes some 50 ms, and a proxy without lessons never asks.
    """
    return tuple((reason, re.compile("|".join(patterns), re.IGNORECASE)) for reason, patterns in _PATTERNS)


def orders() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return those for orders. Words joined into one are looked at for them alone: tools are named `reset_password`."""
    return rules()[-2:]
