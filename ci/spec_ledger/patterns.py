"""Which sentences fix an access, an order or a scope: one table of patterns, each with its reason."""

from __future__ import annotations

import re
from typing import NamedTuple


class Pattern(NamedTuple):
    """A way in which the specification writes about accesses, order and scopes."""

    name: str
    words: str
    """A regular expression, looked for in the plain sentence without regard to case."""
    reason: str
    usage: bool = True
    """Whether it is looked for in valid usage, too."""


_SIDE = r"(?:first|second|source|destination)"
_THING = r"(?:memory|execution|pipeline|buffer|image|subpass|global|self-|external)"
_ORDER_WORD = (
    r"(?:available|visib|synchron|order|barrier|depend|transition|layout|acquire|releas|signal|wait|complet|access"
    r"|preserv|alias|invalidat|flush)"
)

PATTERNS = (
    Pattern(
        "synchronized",
        r"\b(?<!externally )synchronized (?:with|using|to|by|against|between|in)\b|\bmust(?: also)? be synchronized\b"
        r"|\bneeds? to be synchronized\b|\bsynchronized via\b"
        r"|\bresponsib\w+ (?:for|to) synchroniz",
        "says with which stages and accesses an operation must be synchronized, or that it is",
    ),
    Pattern(
        "scope",
        rf"\b{_SIDE} (?:set of )?(?:synchronization|access) scopes?\b|\bsynchronization scopes?\b|\baccess scopes?\b"
        r"|\blimited to access types\b|\bboth pipeline stages when defining dependencies\b",
        "fixes what a dependency covers",
    ),
    Pattern("happens-before", r"\bhappens?-(?:before|after)\b|\bhappen(?:s|ed)? (?:before|after)\b", "fixes an order"),
    Pattern(
        "dependency",
        rf"\b{_THING} ?(?:memory )?(?:dependenc(?:y|ies)|barriers?)\b|\bdependency chains?\b"
        r"|\binsert an? (?:fine-grained )?dependency\b",
        "asks for a dependency, or says what one does",
    ),
    Pattern(
        "implicit",
        rf"\b(?:implicit|implicitly|automatic|automatically)\b.*\b{_ORDER_WORD}|\b{_ORDER_WORD}\w*\b.*\bimplicit",
        "happens without a dependency of the program",
        usage=False,
    ),
    Pattern(
        "equivalent",
        r"\btreated as equivalent to setting\b|\bequivalent to having\b"
        r"|\b(?:equivalent to|identical to|same as|alias for)\b.*\b(?:VK_PIPELINE_STAGE|VK_ACCESS|barrier|scope"
        r"|dependency|stage|vkCmd\w+|vkQueue\w+)|\b(?:VK_PIPELINE_STAGE|VK_ACCESS)\w*\b.*\b(?:equivalent|identical)\b",
        "makes one form of a command, stage or access mean another",
        usage=False,
    ),
    Pattern(
        "order",
        r"\b(?:submission|rasterization|raster|signal operation|primitive|recording) order\b"
        r"|\b(?:execution|api|issue|program) order\b"
        r"|\b(?:location|program|mutually|tessellation-output)-ordered\b|\border(?:ed|ing) with respect\b"
        r"|\b(?:be|is|are) (?:un)?ordered (?:by|before|after|against|relative|against|using|with|in)\b|\breordered\b"
        r"|\border(?:ing)? (?:guarantees?|constraints?|between|relative|of (?:execution|commands|operations))\b"
        r"|\b(?:ordering|synchronization) implied\b|\bno ordering\b|\b(?:logical|loose) ordering\b"
        r"|\bordering of image\b"
        r"|\b(?:in|out of|in any) order (?:they|relative|that they|with respect|of)\b"
        r"|\bout of order\b|\brelative order\b",
        "says that operations are or are not in an order",
    ),
    Pattern(
        "available",
        r"\b(?:made|makes?|making) (?:\w+ ){0,6}?(?:visible|available)\b|\bbecomes? (?:visible|available) to\b"
        r"|\bvisible (?:to|on) (?:all|any|the|future|subsequent|both)\b"
        r"|\bavailable to (?:the |any |a |all |future )?(?:device|host|memory|subsequent|future|other|queue)\b"
        r"|\b(?:availability|visibility) (?:operations?|chains?)\b|\bmemory domain\b|\bnot (?:ever )?be visible\b",
        "fixes when a write can be seen",
        usage=False,
    ),
    Pattern("stage", r"\bVK_PIPELINE_STAGE_\w+", "names the stage of an operation, or what a stage is", usage=False),
    Pattern(
        "access", r"\bVK_ACCESS_\w+|\bno access type\b", "names the kind of an access, or what a kind is", usage=False
    ),
    Pattern(
        "in-stage",
        r"\b(?:access|read|write|operation|store|load|execute|copies|test|occur)\w*\b"
        r".*\b(?:in|by|during) the [\w -]{0,40}?stages?\b.*\b(?:pipeline|execut|perform|occur)",
        "says in which stage something happens",
        usage=False,
    ),
    Pattern(
        "may-access",
        r"\bmay (?:also )?(?:read|write|access|overwrite|modify)\b"
        r"|\bmay perform (?:\w+ ){0,3}(?:reads?|writes?|access\w*|stores?)\b"
        r"|\bread and write back\b|\bread-modify-write\b",
        "allows an access that no argument names",
        usage=False,
    ),
    Pattern(
        "ownership",
        r"\bqueue family ownership\b|\bownership transfers?\b|\bqueue family (?:acquire|release)\b"
        r"|\bownership (?:of|between|from|to) (?:\w+ ){0,4}(?:queue|famil|image|buffer|resource|subresource|range)"
        r"|\bowned by (?:a |the |another |any )?(?:presentation|queue|different)"
        r"|\b(?:lose|release|acquire)s? ownership\b"
        r"|\bownership explicitly transferred\b|\bmatching acquire operation\b",
        "fixes which queue family may access",
    ),
    Pattern(
        "race",
        r"\bdata races?\b|\bhazards?\b|\brace conditions?\b|\bconcurrent(?:ly)? (?:access|execut|read|writ|us)"
        r"|\baccess\w* (?:\w+ ){0,6}(?:concurrently|simultaneously)\b"
        r"|\bsimultaneously being used\b",
        "says which accesses must not meet",
    ),
    Pattern(
        "operation",
        r"\b(?:signal|wait|unsignal) operations?\b|\bupon which to wait\b|\bsignaled (?:when|before)\b"
        r"|\bconsidered signaled\b|\bare signaled\b|\bsignal value is\b|\bwait for an event\b",
        "says what signaling and waiting orders",
        usage=False,
    ),
    Pattern(
        "complete",
        r"\bcomplet(?:e|es|ed|ion)\b.{0,60}\b(?:before|prior to|until|after)\b"
        r"|\b(?:before|until|after|once)\b.{0,80}\b(?:has|have) completed?\b"
        r"|\bcompletes? execution\b|\bblocks? until\b",
        "says what must be complete before what",
        usage=False,
    ),
    Pattern(
        "region",
        r"\bframebuffer-(?:local|global)\b|\bframebuffer-space pipeline stages?\b|\bVK_DEPENDENCY_\w+"
        r"|\bview-(?:local|global)\b|\bdevice-local dependenc"
        r"|\bdependencies are device-local\b",
        "splits a dependency into parts, or says which stages have parts",
        usage=False,
    ),
    Pattern(
        "reach",
        r"\bclamp to the edge of the source region\b|\bhold a reference to any\b"
        r"|\b(?:is|are) (?:read|written) (?:by|from) the device\b"
        r"|\bexecuted on the host\b|\b(?:unbound|non-resident) regions?\b|\bwhile a bind operation\b"
        r"|\bvalue of the predicate\b",
        "reaches memory beside what the arguments name",
        usage=False,
    ),
    Pattern(
        "load-store",
        r"\bVK_ATTACHMENT_(?:LOAD|STORE)_OP_\w+|\b(?:load|store|resolve) operations?\b",
        "says what loading, storing and resolving attachments accesses, and when",
        usage=False,
    ),
    Pattern(
        "alias",
        r"\bmemory alias|\balias(?:es|ed|ing)?\b.*\b(?:memory|resource|image|buffer|attachment)",
        "makes accesses of one object accesses of another",
        usage=False,
    ),
    Pattern(
        "undefined",
        r"\b(?:contents?|values?|data|memory|range)\b.*\bbecomes? undefined\b"
        r"|\bcontents are undefined\b|\bresult\w* written by this command (?:is|are) undefined\b",
        "changes contents without a write of the program",
        usage=False,
    ),
    Pattern("feedback", r"\bfeedback loops?\b", "says when an attachment may be read while it is written"),
)

COMPILED = tuple((each, re.compile(each.words, re.IGNORECASE)) for each in PATTERNS)


def matches(text: str, usage: bool) -> list[tuple[str, str]]:
    """The names of the patterns that a sentence has, each with the words that it was found by."""
    found = [(each, pattern.search(text)) for each, pattern in COMPILED if each.usage or not usage]
    return [(each.name, hit[0]) for each, hit in found if hit]
