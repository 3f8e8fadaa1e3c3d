"""Text from outside in what is generated: one function for each language that it goes to.

Names of files, objects, labels, sites, extensions and calls may hold anything that a program or a file can say: ends of
strings and comments, ends of lines, characters that a terminal obeys or that an editor does not show, and what is no
character at all. (JSON and terminals: `vkharness.report.printable`.)

>>> print(python_string('a"b\\u202e'))
"a\\"b\\u202e"
>>> print(markdown("[x](y) <b> `"))
[x]\\(y) &lt;b> \\`
>>> print(c_string('a"?\\n\xe9'))
"a\\"\\?\\012\\303\\251"
>>> python_name("1 + 1"), uri("a b\\udcff"), markup("<b>\\x00")
('1___1', 'a%20b%FF', '&lt;b&gt;\\\\x00')
"""

from __future__ import annotations

from html import escape
from typing import Any
from urllib.parse import quote

ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def python_string(value: str) -> str:
    """A string of Python, in double quotes on one line. What is not printable is escaped."""
    return f'"{"".join(map(_in_python, value))}"'


def _in_python(character: str) -> str:
    if character in ESCAPES:
        return ESCAPES[character]
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")


def c_string(text: str) -> str:
    """A string of C, in double quotes on one line: its bytes in UTF-8, escaped where one is not printable."""
    return f'"{"".join(map(_in_c, _bytes_of(text)))}"'


def _in_c(byte: int) -> str:
    character = chr(byte)
    if character in '"\\?':
        return f"\\{character}"
    return character if 0x20 <= byte < 0x7F else f"\\{byte:03o}"


def python_name(text: str) -> str:
    """As much of a text as may be a part of a name of Python; what may not is an underscore."""
    return "".join(each if f"a{each}".isidentifier() else "_" for each in text)


def uri(path: str) -> str:
    """The path of a file in a URI. Bytes of a name that are no characters are these bytes again."""
    return quote(_bytes_of(path))


def _bytes_of(text: str) -> bytes:
    strange = any("\ud800" <= each <= "\udfff" and not "\udc80" <= each <= "\udcff" for each in text)
    return text.encode("utf-8", "surrogatepass" if strange else "surrogateescape")


def markup(text: str) -> str:
    """Text of HTML, SVG or XML, in an element or in a quoted attribute. None of these can say every character."""
    return escape(visible(text))


def markdown(text: str) -> str:
    """Text in a line of Markdown: no markup, no link, no code. A block of code is for texts of several lines."""
    found = visible(text).replace("\n", "\\n")
    for mark, instead in (("&", "&amp;"), ("<", "&lt;"), ("`", "\\`"), ("*", "\\*"), ("](", "]\\("), ("][", "]\\[")):
        found = found.replace(mark, instead)
    return str(found)


def visible(value: Any) -> Any:
    """A text in which all but ends of lines can be seen, for a template that escapes markup itself; any other value."""
    if not isinstance(value, str) or value.isprintable():
        return value
    return "".join(each if each.isprintable() or each == "\n" else _in_python(each) for each in value)
