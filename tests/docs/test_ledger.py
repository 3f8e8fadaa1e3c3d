"""ci/ledger on small sources of our own: what is a sentence, what is found, and what a change of the sources costs."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

from ci.spec_ledger.__main__ import check, read_checkout, write
from ci.spec_ledger.asciidoc import Sentence, Sources, plain, sentences
from ci.spec_ledger.ledger import Files, Ledger, hash_of
from ci.spec_ledger.patterns import PATTERNS, matches
from ci.spec_ledger.registry import Registry

CHAPTER = """\
// A comment that happens before nothing.
[[clouds]]
= Clouds

Clouds are ordered by the wind, and
that happens-before rain.
A second sentence says must:
be synchronized with flink:vkCmdRain.

[NOTE]
====
A note happens before nothing.
====

[source,c]
----
int x; // happens before
----

ifdef::VK_KHR_rain[]
Only rain happens before snow.
endif::VK_KHR_rain[]
ifdef::VK_VERSION_1_1,VK_KHR_hail[]
Hail happens before ice.
endif::VK_VERSION_1_1,VK_KHR_hail[]
ifdef::VKSC_VERSION_1_0[]
Fog happens before frost.
endif::VKSC_VERSION_1_0[]
ifndef::VK_KHR_rain[]
Dew happens before frost.
endif::VK_KHR_rain[]
ifdef::VK_KHR_rain[One line happens before another.]

[open,refpage='vkCmdRain',desc='Rain',type='protos']
--
[[rain-lists]]
  * The first item happens before
    the second item.
  * sname:VkCloud:: happens after
    both.
+
A paragraph of the item happens after it.

.Valid Usage
****
  * [[VUID-vkCmdRain-None-00001]]
    It must: happen after a data race with pname:p
  * [[VUID-vkCmdRain-None-00002]]
    The pname:wind must: not be zero
include::{chapters}/commonvalidity/wet_common.adoc[]
****

include::{generated}/validity/protos/vkCmdRain.adoc[]
--

After the page the heading's anchor happens before again.
include::{chapters}/parts/snow.adoc[]
include::{chapters}/clouds.adoc[tag=again]
"""
COMMON = """\
  * [[VUID-{refpage}-None-00003]]
    Every write must: happen before {refpage}
"""
PART = "Snow of a part happens before spring.\n"
REGISTRY = """\
<registry>
  <types>
    <type category="define">#define <name>VK_HEADER_VERSION</name> 7</type>
    <type category="define">#define <name>V</name> <type>VK_MAKE_API_VERSION</type>(0, 1, 4, VK_HEADER_VERSION)</type>
    <type category="struct" name="VkRainInfo" structextends="VkSubmitInfo,VkOther"/>
    <type category="struct" name="VkDryInfo" structextends="VkOther"/>
    <type category="struct" name="VkPhysicalDeviceRainFeatures" structextends="VkPhysicalDeviceFeatures2">
      <member><type>VkBool32</type> <name>rain</name></member>
    </type>
  </types>
  <enums name="VkSharingMode" type="enum"><enum value="0" name="VK_SHARING_MODE_EXCLUSIVE"/></enums>
  <commands>
    <command tasks="action" queues="VK_QUEUE_COMPUTE_BIT"><proto><name>vkCmdRain</name></proto></command>
    <command tasks="state"><proto><name>vkCmdSetWind</name></proto></command>
    <command><proto><name>vkWaitForRain</name></proto></command>
    <command><proto><name>vkGetRain</name></proto></command>
    <command name="vkCmdRainKHR" alias="vkCmdRain"/>
    <command api="vulkansc" tasks="action"><proto><name>vkCmdSafe</name></proto></command>
  </commands>
  <feature api="vulkan" name="VK_VERSION_1_0" number="1.0"><require><command name="vkCmdRain"/></require></feature>
  <extensions>
    <extension name="VK_X_rain" supported="vulkan"><require>
      <enum extends="VkSharingMode" name="VK_SHARING_MODE_RAIN_X" offset="1"/></require></extension>
  </extensions>
  <sync>
    <syncstage name="VK_PIPELINE_STAGE_2_RAIN_BIT"><syncsupport queues="VK_QUEUE_COMPUTE_BIT"/></syncstage>
    <syncaccess name="VK_ACCESS_2_RAIN_READ_BIT_X"><syncsupport stage="VK_PIPELINE_STAGE_2_RAIN_BIT"/></syncaccess>
    <syncpipeline name="rain"><syncpipelinestage>VK_PIPELINE_STAGE_2_RAIN_BIT</syncpipelinestage></syncpipeline>
  </sync>
</registry>
"""
BINDINGS = """\
extension_chapters = ["VK_*"]
[reasons]
weather = "about the weather alone"
[bind]
clouds = [
  ["rain-lists", "happens after both", "rule read-after-write"],
  ["VUID-*", "", "gap commands"],
  ["*", "", "rule write-after-read"],
]
"commonvalidity/*" = [["*", "", "not weather"]]
registry = [["*", ["vkCmdRain", "vkWaitForRain"], "gap commands"], ["*", "", "not weather"]]
"""


@dataclass
class Checkout:
    """A checkout of small sources, and the files of ours that belong to it."""

    folder: Path
    files: Files

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def change(self, name: str, *pairs: tuple[str, str]) -> None:
        text = (self.folder / name).read_text(encoding="utf-8")
        for old, new in pairs:
            assert old in text
            text = text.replace(old, new, 1)
        self.write(name, text)

    def rebind(self, old: str, new: str) -> None:
        text = self.files.bindings.read_text(encoding="utf-8")
        assert old in text
        self.files.bindings.write_text(text.replace(old, new), encoding="utf-8")

    def check(self) -> list[str]:
        return check(self.folder, self.files)


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    files = Files(tmp_path / "bindings.toml", tmp_path / "ledger.tsv", tmp_path / "specification.md")
    made = Checkout(tmp_path / "spec", files)
    made.write("chapters/clouds.adoc", CHAPTER)
    made.write("chapters/commonvalidity/wet_common.adoc", COMMON)
    made.write("chapters/parts/snow.adoc", PART)
    made.write("appendices/other.adoc", "[[other]]\n= Other\n\nIt happens before nothing.\n")
    made.write("xml/vk.xml", REGISTRY)
    files.bindings.write_text(BINDINGS, encoding="utf-8")
    assert write(made.folder, "0" * 40, files) == []
    return made


def read(text: str, usage: bool = False) -> list[Sentence]:
    name = "commonvalidity/x.adoc" if usage else "x.adoc"
    return list(sentences(name.removesuffix(".adoc"), Sources({name: textwrap.dedent(text)}).lines(name)))


def test_sentences_are_read_from_a_chapter() -> None:
    sources = Sources({"clouds.adoc": CHAPTER, "parts/snow.adoc": PART})
    found = list(sentences("clouds", sources.lines("clouds.adoc")))
    said = [(each.section, each.text, each.core) for each in found if " happen" in each.text or "-before" in each.text]
    assert said == [
        ("clouds", "Clouds are ordered by the wind, and that happens-before rain.", True),
        ("clouds", "Only rain happens before snow.", False),
        ("clouds", "Hail happens before ice.", True),
        ("clouds", "One line happens before another.", False),
        ("rain-lists", "The first item happens before the second item.", True),
        ("rain-lists", "VkCloud happens after both.", True),
        ("rain-lists", "A paragraph of the item happens after it.", True),
        ("VUID-vkCmdRain-None-00001", "It must happen after a data race with p", True),
        ("clouds", "After the page the heading's anchor happens before again.", True),
        ("clouds", "Snow of a part happens before spring.", True),
    ]
    assert [each.text for each in found if each.usage] == [
        "It must happen after a data race with p",
        "The wind must not be zero",
    ]
    assert "A second sentence says must be synchronized with vkCmdRain." in {each.text for each in found}


def test_what_many_commands_include_is_read_once_as_valid_usage() -> None:
    (only,) = read(COMMON, usage=True)
    assert only[1:] == ("VUID-{refpage}-None-00003", "Every write must happen before refpage", True, True)


def test_markup_changes_no_sentence() -> None:
    assert plain("`a` flink:vkX <<b-c,the\n   text>> _d_ {e} x~1~ *y*") == "a vkX the text d e x1 y"
    assert hash_of(plain("flink:vkX  must:\nbe")) == hash_of(plain("vkX must be"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("synchronized", "The reads must be synchronized with rain."),
        ("scope", "The first synchronization scope includes rain."),
        ("happens-before", "Rain happens-before snow."),
        ("dependency", "A pipeline barrier is required."),
        ("implicit", "A wait is implicitly made."),
        ("equivalent", "Rain is equivalent to vkCmdSnow."),
        ("order", "Drops are performed in rasterization order."),
        ("available", "Writes are made available."),
        ("stage", "It occurs in VK_PIPELINE_STAGE_RAIN_BIT."),
        ("access", "It uses VK_ACCESS_RAIN_READ_BIT."),
        ("in-stage", "Each read is executed in the wet pipeline stage of the pipeline."),
        ("may-access", "It may read and write back any drop."),
        ("ownership", "It needs a queue family ownership transfer."),
        ("race", "That is a data race."),
        ("operation", "It defines a semaphore signal operation."),
        ("complete", "Rain must complete before snow."),
        ("region", "It is framebuffer-local."),
        ("reach", "It is read by the device."),
        ("load-store", "VK_ATTACHMENT_LOAD_OP_LOAD keeps it."),
        ("alias", "Two names alias the same memory."),
        ("undefined", "The contents of it become undefined."),
        ("feedback", "There is a feedback loop."),
    ],
)
def test_each_pattern_finds(name: str, text: str) -> None:
    assert name in dict(matches(text, usage=False))
    assert matches("Rain is wet.", usage=False) == []


def test_every_pattern_has_a_reason() -> None:
    assert len({each.name for each in PATTERNS}) == len(PATTERNS)
    assert all(len(each.reason.split()) >= 3 for each in PATTERNS)


def test_the_registry_gives_records(checkout: Checkout) -> None:
    registry = Registry(checkout.folder / "xml" / "vk.xml")
    assert registry.version() == "1.4.7"
    assert {each.section: each.core for each in registry.records()} == {
        "stage VK_PIPELINE_STAGE_2_RAIN_BIT": True,
        "access VK_ACCESS_2_RAIN_READ_BIT_X": False,
        "pipeline rain": True,
        "command vkCmdRain": True,
        "command vkWaitForRain": False,
        "struct VkRainInfo": False,
        "features VkPhysicalDeviceRainFeatures": False,
        "flag VK_SHARING_MODE_EXCLUSIVE": False,
        "flag VK_SHARING_MODE_RAIN_X": False,
    }


def test_sources_that_did_not_change_fit(checkout: Checkout) -> None:
    assert checkout.check() == []
    made = Ledger.read(checkout.files.ledger)
    assert (made.version, made.commit) == ("1.4.7", "0" * 40)
    assert dict(made.counts("clouds")) == {"rule": 10, "gap": 1}
    assert "happens before snow" not in checkout.files.ledger.read_text(encoding="utf-8")


def test_five_changed_sentences_are_five_failures(checkout: Checkout) -> None:
    checkout.change(
        "chapters/clouds.adoc",
        ("ordered by the wind", "ordered by the moon"),
        ("Hail happens before ice", "Hail happens before water"),
        ("happens after\n    both", "happens after\n    neither"),
        ("with pname:p", "with pname:q"),
    )
    checkout.change("chapters/parts/snow.adoc", ("before spring", "after spring"))
    said = checkout.check()
    assert [line.partition(" ")[0] for line in said] == ["changed:"] * 5, "the binding of a changed one is idle, too"
    assert any(line.startswith("changed: clouds/VUID-vkCmdRain-None-00001 (happens-before,race: ") for line in said)


def test_new_and_lost_sentences_fail(checkout: Checkout) -> None:
    checkout.change("chapters/clouds.adoc", ("Hail happens before ice.\n", ""))
    checkout.write("chapters/moon.adoc", "[[moon]]\n= Moon\n\nThe moon happens before the sun.\n")
    checkout.change("xml/vk.xml", ('name="VK_SHARING_MODE_RAIN_X"', 'name="VK_SHARING_MODE_SNOW_X"'))
    said = checkout.check()
    assert [line.partition(" ")[0] for line in said] == ["gone:", "gone:", "new:", "new:", "unbound:"]
    assert said[-1] == "unbound: moon/moon (happens-before): The moon happens before the sun."


def test_a_record_whose_attributes_change_is_changed(checkout: Checkout) -> None:
    checkout.change("xml/vk.xml", ('queues="VK_QUEUE_COMPUTE_BIT"><proto>', 'queues="VK_QUEUE_GRAPHICS_BIT"><proto>'))
    assert checkout.check() == ["changed: registry/command vkCmdRain (command: 'vkCmdRain') command vkCmdRain"]


def test_a_binding_that_binds_nothing_fails(checkout: Checkout) -> None:
    checkout.rebind("clouds = [", 'clouds = [\n  ["moon", "", "rule read-after-write"],')
    assert checkout.check() == ["binds nothing: clouds: moon -> rule read-after-write"]


def test_a_target_that_is_not_there_fails(checkout: Checkout) -> None:
    checkout.rebind("rule read-after-write", "rule no-such-rule")
    told, anew = checkout.check()
    assert told == "rule no-such-rule: docs/rules.md has it no more; bind what is bound to it anew in bindings.toml"
    assert anew.startswith("bound anew: clouds/rain-lists: rule read-after-write -> rule no-such-rule")


def test_another_target_is_written(checkout: Checkout) -> None:
    checkout.rebind("rule read-after-write", "rule write-after-write")
    assert len(checkout.check()) == 1
    assert write(checkout.folder, "1" * 40, checkout.files) == []
    assert checkout.check() == []
    assert Ledger.read(checkout.files.ledger).commit == "1" * 40


def test_an_unbound_sentence_leaves_the_ledger_as_it_was(checkout: Checkout) -> None:
    before = checkout.files.ledger.read_bytes()
    checkout.write("chapters/moon.adoc", "[[moon]]\n= Moon\n\nThe moon happens before the sun.\n")
    assert len(write(checkout.folder, "1" * 40, checkout.files)) == 1
    assert checkout.files.ledger.read_bytes() == before


def test_a_commit_is_asked_for(checkout: Checkout) -> None:
    assert write(checkout.folder, "", checkout.files) == [
        "--commit is missing, and git knows no commit of the checkout"
    ]


def test_the_first_binding_that_fits_counts(checkout: Checkout) -> None:
    targets = {each.text: each.entry.target for each in read_checkout(checkout.folder, checkout.files)[0]}
    assert targets["VkCloud happens after both."] == "rule read-after-write"
    assert targets["It must happen after a data race with p"] == "gap commands"
    assert targets["Every write must happen before refpage"] == "not weather"
    assert targets["command vkWaitForRain"] == "gap commands"
    assert targets["struct VkRainInfo"] == "not weather"


def test_a_binding_without_a_kind_is_refused(checkout: Checkout) -> None:
    checkout.rebind('"rule write-after-read"', '"write-after-read"')
    with pytest.raises(ValueError, match="a target is one of"):
        checkout.check()


def test_what_is_no_checkout_is_refused(checkout: Checkout, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        check(checkout.folder.parent, checkout.files)
    assert raised.value.code == 2
    assert "is no checkout of Vulkan-Docs" in capsys.readouterr().err
