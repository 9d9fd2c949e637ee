"""What a lesson may not speak of: secrets, the system prompt, overriding instructions, obeying what was read.

Phrases of attacks, most of them in English, a few words of some twenty other languages for the commonest of all. A list
of phrases is never whole: it stops what is said plainly, and the layers behind it are for the rest. What is negated is
advice ("do not ignore the instructions") and passes.
"""

from __future__ import annotations

from typing import Final

_INSTRUCTIONS: Final = (
    r"(?:instructions?|directives?|guidelines?|rules|polic(?:y|ies)|prompts?|guardrails?|safeguards?|safety"
    r"|restrictions?|guidance)"
)
_ORDERS: Final = r"(?:instructions?|orders?|commands?|directives?|requests?|prompts?)"
_OVERRIDES: Final = (
    r"(?<!not )(?<!n't )(?<!never )(?<!avoid )(?<!without )"
    r"\b(?:ignor|disregard|forget|overrid|bypass|overrul|supersed|circumvent|violat|disobey|defy)\w*"
)
_OBEY: Final = r"(?:obey|follow|execute|comply with|act on|carry out)"
_SAYS: Final = r"(?:tells?|says?|wants?|asks?|demands?|instructs?|orders?|requests?)"
_READ: Final = (
    r"(?:tool (?:results?|outputs?|responses?)|(?:web ?)?pages?|web ?sites?|e-?mails?|transcripts?|search results?"
    r"|(?:base ?64|encoded|hidden|decoded)(?: \w+)?|retrieved (?:\w+ )?(?:texts?|documents?|content))"
)
"""What others write into: nothing in it is an order."""
_SHOW: Final = (
    r"(?:repeat|print|output|reveal|show|disclose|translate|recite|quote|dump|copy|echo|display|share|give out)"
)
_PEOPLE: Final = r"(?:users?|customers?|clients?|guests?|patients?|anyone|anybody)"
_NOT: Final = r"(?:never|not|\w+n't|without|nothing)"


def near(first: str, *rest: str | int) -> str:
    """Return the pattern of words in this order, each number being how many others may stand between."""
    pairs = zip(rest[::2], rest[1::2], strict=True)
    return rf"\b{first}\b" + "".join(rf"\W+(?:\w+\W+){{0,{most}}}?{words}\b" for most, words in pairs)


SECRETS: Final = (
    r"\b(?:api[ _-]?keys?|pass[ -]?(?:word|phrase|code)s?|credentials?|secrets?|(?:private|ssh|signing) keys?)\b",
    r"\b(?:access|auth|bearer|session|security|authentication|log-?in) (?:tokens?|cookies?|data|details)\b",
    r"\b(?:env(?:ironment)? var(?:iable)?s?|one-time codes?|card numbers?|bank (?:details|data)|social security)\b",
    r"\b(?:(?:two|2|multi)-factor|2FA|OTPs?|CVVs?|CVCs?|SSNs?)\b|\b(?-i:PINs?)\b|\bexfiltrat\w*",
    r"\b(?:your|our|their|its) (?:\w+ )?(?:keys|tokens)\b|\bprivate (?:data|information)\b",
)
PROMPT: Final = (
    r"\b(?:system|developer|initial|hidden|original)[ -]?(?:prompts?|messages?|instructions?)\b",
    r"\bprompts? of the (?:system|developer|operator)\b",
    r"\b(?:stands?|comes?|came|is|was) before this (?:conversation|chat)\b",
    near(
        _SHOW, 3, r"(?:your|its own) (?:\w+ )?(?:prompt|instructions?|rules|guidelines|preamble|configuration|context)"
    ),
    near(_SHOW, 1, r"the (?:\w+ )?preamble"),
    near(_SHOW, 1, r"(?:everything|all|(?:the )?(?:text|words)) (?:\w+ ){0,2}?above"),
    near(_SHOW, 2, r"what you (?:were|are|have been) (?:told|given|instructed)"),
    near(r"(?:repeat|reveal|print|output|disclose)", 1, r"first message"),
)
OVERRIDES: Final = (
    rf"{_OVERRIDES}\W+(?!to\b)(?:\w+\W+){{0,4}}?{_INSTRUCTIONS}\b",
    r"\b(?:ignore|disregard|forget) (?:everything|all|anything|what) (?:\w+ ){0,2}(?:above|before|earlier)\b",
    r"\b(?:ignore|disregard|forget) (?:everything|all|anything|what) (?:\w+ ){0,3}(?:said|told|know|knew|learned)\b",
    r"\b(?:override|overrule|disobey|defy) (?:the )?(?:users?|operators?|developers?|owners?)\b",
    r"\bjail ?break|\bdo anything now\b|\b(?-i:DAN)\b",
    r"\b(?:developer|god|admin|debug|dan) mode\b|\bact as (?:an? |the )?(?:admin\w*|root|superuser|operator)\b",
    r"\byou are now\b|\bfrom now on\b|\bnew instructions\b|\byour new (?:task|role|goal|job|purpose)\b",
    r"\bpretend (?:to be|you)\b|\bnever refuse\b|\brefuse no\w*\b|\balways comply\b|\bwithout (?:any )?limits\b",
    r"\bno (?:rules|restrictions|limits) apply\b|\brole-?play(?:ing)? as\b",
    r"\b(?:with|has|have|having) no (?:rules|restrictions|limits|limitations|filters?|guardrails)\b",
    r"\b(?:unrestricted|uncensored|unfiltered|jailbroken) (?:\w+ )?(?:assistant|model|AI|agent|persona|mode)\b",
    near(
        _NOT, 1, r"(?:follow|obey|respect|heed)", 2, r"(?:instructions|directives|guidelines|polic(?:y|ies)|the rules)"
    ),
    near(_NOT, 1, "apply", 2, r"(?:instructions|directives|guidelines|polic(?:y|ies))"),
    near(
        r"(?:stop following|skip|disable|turn off|set aside|pay no attention to|suspend)",
        2,
        r"(?:directives|guidelines|polic(?:y|ies)|guardrails|safeguards|safety|moderation|instructions|rules)",
    ),
    rf"\b(?:precedence|priority) over (?:\w+ ){{0,3}}(?:{_INSTRUCTIONS}|lessons|entries)\b",
    rf"\b{_INSTRUCTIONS} (?:\w+ ){{0,2}}(?:no longer|(?:do|does|did)(?: not|n't)) (?:apply|count|hold|matter)",
    rf"\b{_INSTRUCTIONS} (?:are|is) (?:now |all )?(?:void|invalid|suspended|cancell?ed|lifted|wrong|not binding)\b",
    rf"\b{_NOT} (?:tell|reveal|mention|inform|ask)(?:ing)?(?: \w+){{0,3}} users?\b",
    rf"\bwithout (?:telling|informing|asking|warning) (?:\w+ )?{_PEOPLE}\b|\b(?:not|never|n't) disclose\b",
    near(_NOT, 1, "(?:mention|tell|say|show)", 3, "to", 0, "(?:anyone|anybody)"),
    r"\bnothing (?:\w+ ){0,2}to the user\b",
    r"(?<!not )(?<!never )(?<!n't )"
    + near("(?:hide|conceal|withhold)", 2, "(?:fees?|prices?|costs?|risks?|truth|facts?)"),
)
ELSEWHERE: Final = (
    r"\b(?:ignorier|missacht|vergiss|vergesst|umgeh)\w*\W+(?:\w+\W+){0,4}?(?:anweisung|regel|vorgabe|richtlinie)\w*",
    r"\b(?:ignor|olvid|desobede|omit)\w*\W+(?:\w+\W+){0,4}?(?:instruccion|instrucción|regla|norma|órden)\w*",
    r"\b(?:ignor|oubli|désobé)\w*\W+(?:\w+\W+){0,4}?(?:consigne|règle|directive)\w*",
    r"\b(?:ignor|dimentic|disobbed)\w*\W+(?:\w+\W+){0,4}?(?:istruzion|regol)\w*",
    r"\b(?:ignor|esque[çc]|desobede)\w*\W+(?:\w+\W+){0,4}?(?:instruç|regra)\w*",
    r"\b(?:negeer|vergeet)\w*\W+(?:\w+\W+){0,4}?(?:instructie|regel)\w*",
    r"\b(?:игнорир|забуд|наруш)\w*\W+(?:\w+\W+){0,4}?(?:инструкц|указан|правил)\w*",
    r"(?:忽略|无视|無視|忘记|忘記|违反).{0,8}(?:指令|指示|规则|規則|提示|说明)",
    r"(?:指示|命令|ルール|規則).{0,6}(?:無視|忘れ)",
    r"(?:지시|명령|규칙|지침|안내).{0,6}(?:무시|잊)",
    r"(?:تجاهل|انس[َى]?|نادیده).{0,20}(?:التعليمات|تعليمات|القواعد|الأوامر)|(?:دستور|قوانین|قواعد).{0,20}نادیده",
    r"(?:התעלם|התעלמ\w|שכח).{0,20}(?:הוראות|ההוראות|כללים|הכללים)",
    r"(?:निर्देश|नियम|आदेश).{0,12}(?:अनदेख|नज़रअंदाज़|नजरअंदाज|भूल|उपेक्षा)",
    r"(?:ไม่ต้องสนใจ|เพิกเฉย|ละเว้น|ลืม).{0,20}(?:คําสั่ง|กฎ)",
    r"\b(?:talimat|kural|yönerge|komut)\w*\W+(?:\w+\W+){0,3}?(?:yok say|görmezden gel|unut|dikkate alma)\w*",
    r"\b(?:ignoruj|zignoruj|zapomnij|pomiń|pomijaj)\w*\W+(?:\w+\W+){0,4}?(?:instrukcj|poleceni|zasad|wytyczn)\w*",
    r"\b(?:ignoruj|zapomeň|zapomeňte|nedodržuj)\w*\W+(?:\w+\W+){0,4}?(?:pokyn|instrukc|pravid)\w*",
    r"\b(?:ignorer|glöm|glem|bortse|åsidosätt|tilsidesæt)\w*\W+(?:\w+\W+){0,4}?(?:instruktion|instruksjon|instruks|regl|regel)\w*",
    r"\b(?:bỏ qua|phớt lờ|quên)\W+(?:\w+\W+){0,4}?(?:hướng dẫn|chỉ dẫn|chỉ thị|quy tắc|lệnh)",
    r"\b(?:abaikan|lupakan|hiraukan)\W+(?:\w+\W+){0,4}?(?:instruksi|arahan|perintah|aturan|peraturan)\w*",
    r"\b(?:αγνόησ|αγνοήσ|ξέχασ|παράβλεψ)\w*\W+(?:\w+\W+){0,4}?(?:οδηγί|εντολ|κανόν)\w*",
    r"\b(?:ігнору|забуд|поруш)\w*\W+(?:\w+\W+){0,4}?(?:інструкц|вказівк|правил)\w*",
)
"""The same in other languages: German, Spanish, French, Italian, Portuguese, Dutch, Russian, Chinese, Japanese, Korean,
Arabic, Persian, Hebrew, Hindi, Thai, Turkish, Polish, Czech, the Scandinavian ones, Vietnamese, Indonesian, Greek,
Ukrainian. Words of those without capitals or spaces are looked for anywhere."""
OBEDIENCE: Final = (
    near(_OBEY, 4, _ORDERS, 1, "(?:in|inside|within|on|from|of|by|that)", 3, _READ),
    near("(?:do|act|follow|answer)", 1, "(?:as|what|whatever|everything)", 3, _READ, 4, _SAYS),
    near("(?:obey|comply with|execute)", 3, _READ),
    near(_READ, 9, "(?:obey|execute|act on|comply with) (?:it|them)"),
    near(_READ, 9, "(?:do|follow) (?:as|what|whatever) (?:it|they|is|that)"),
)
