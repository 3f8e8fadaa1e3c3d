"""Descriptor update templates: what an application hands to one is in the trace, judged and replayed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import vkharness
from tests.support.recording import make_rig
from vkharness.check import Analysis
from vkharness.device.drivers import environment, find_driver
from vkharness.record.session import Session
from vkharness.replay.outcomes.executor import execute, open_scene
from vkharness.replay.schedule.steps import flatten
from vkharness.spec._generated import ENUMS
from vkharness.spec.enums import VkDescriptorType, VkStructureType
from vkharness.trace.calls import Block, Call
from vkharness.trace.codec import load, save
from vkharness.trace.templates import PUSH, PUSH_2, PUSH_INFO, UPDATE, plain

SHADER = Path(__file__).resolve().parents[2] / "shaders" / "copy_words.comp.spv"
STORAGE_BUFFER = VkDescriptorType.STORAGE_BUFFER
OFFSET, STRIDE = 8, 40
WORDS = 256
EXTENSIONS = {UPDATE: [], PUSH: ["VK_KHR_push_descriptor"]}
EXTENSIONS[PUSH_2] = [*EXTENSIONS[PUSH], "VK_KHR_maintenance6"]


@pytest.fixture(autouse=True)
def driver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """lavapipe, and for the second form of a push one of Vulkan 1.4."""
    chosen = (
        "lavapipe-25" if "name" in request.fixturenames and request.getfixturevalue("name") == PUSH_2 else "lavapipe"
    )
    for name, value in environment(find_driver(chosen)).items():
        monkeypatch.setenv(name, value)


class Copy:
    """A dispatch that copies one buffer into another, its descriptors given through a template."""

    def __init__(self, rig: Any, name: str) -> None:
        import vulkan as vk

        push = name != UPDATE
        self.vk, self.rig, self.push, self.name = vk, rig, push, name
        self.source, self.target = rig.buffer(4 * WORDS)[0], rig.buffer(4 * WORDS)[0]
        bindings = [
            vk.VkDescriptorSetLayoutBinding(binding=i, descriptorType=STORAGE_BUFFER, descriptorCount=1, stageFlags=32)
            for i in range(2)
        ]
        info = vk.VkDescriptorSetLayoutCreateInfo(flags=int(push), pBindings=bindings)
        self.set_layout = vk.vkCreateDescriptorSetLayout(rig.device, info, None)
        self.layout = vk.vkCreatePipelineLayout(
            rig.device, vk.VkPipelineLayoutCreateInfo(pSetLayouts=[self.set_layout]), None
        )
        code, name = SHADER.read_bytes(), vk.ffi.new("char[]", b"main")
        info = vk.VkShaderModuleCreateInfo(codeSize=len(code), pCode=code)
        self.module = vk.vkCreateShaderModule(rig.device, info, None)
        stage = vk.VkPipelineShaderStageCreateInfo(stage=32, module=self.module, pName=name)
        info = vk.VkComputePipelineCreateInfo(stage=stage, layout=self.layout)
        self.pipeline = vk.vkCreateComputePipelines(rig.device, None, 1, [info], None)[0]
        self.pool = self.set = None
        if not push:
            size = vk.VkDescriptorPoolSize(type=STORAGE_BUFFER, descriptorCount=2)
            info = vk.VkDescriptorPoolCreateInfo(maxSets=1, pPoolSizes=[size])
            self.pool = vk.vkCreateDescriptorPool(rig.device, info, None)
            info = vk.VkDescriptorSetAllocateInfo(descriptorPool=self.pool, pSetLayouts=[self.set_layout])
            self.set = vk.vkAllocateDescriptorSets(rig.device, info)[0]

    def template(self) -> Any:
        """A template of both bindings, whose data lie `STRIDE` bytes apart from `OFFSET`."""
        vk = self.vk
        entries = [
            vk.VkDescriptorUpdateTemplateEntry(
                dstBinding=i, descriptorCount=1, descriptorType=STORAGE_BUFFER, offset=OFFSET + i * STRIDE, stride=0
            )
            for i in range(2)
        ]
        info = vk.VkDescriptorUpdateTemplateCreateInfo(
            pDescriptorUpdateEntries=entries,
            templateType=int(self.push),
            descriptorSetLayout=self.set_layout,
            pipelineBindPoint=1,
            pipelineLayout=self.layout,
        )
        return vk.vkCreateDescriptorUpdateTemplate(self.rig.device, info, None)

    def run(self, template: Any, barrier: bool = False) -> None:
        """Fills the source, and copies it, with or without a barrier between."""
        vk, commands = self.vk, self.rig.commands()
        vk.vkCmdFillBuffer(commands, self.source, 0, 4 * WORDS, 7)
        if barrier:
            masks = {"srcAccessMask": vk.VK_ACCESS_TRANSFER_WRITE_BIT, "dstAccessMask": vk.VK_ACCESS_SHADER_READ_BIT}
            stages = (vk.VK_PIPELINE_STAGE_TRANSFER_BIT, vk.VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT)
            vk.vkCmdPipelineBarrier(commands, *stages, 0, 1, [vk.VkMemoryBarrier(**masks)], 0, None, 0, None)
        vk.vkCmdBindPipeline(commands, 1, self.pipeline)
        data = self.data()
        if self.name == PUSH_2:
            kind = VkStructureType.PUSH_DESCRIPTOR_SET_WITH_TEMPLATE_INFO
            info = vk.ffi.new("VkPushDescriptorSetWithTemplateInfoKHR *")
            info.sType, info.descriptorUpdateTemplate, info.layout, info.pData = kind, template, self.layout, data
            vk.vkGetDeviceProcAddr(self.rig.device, PUSH_2)(commands, info)
        elif self.push:
            push = vk.vkGetDeviceProcAddr(self.rig.device, PUSH)
            push(commands, template, self.layout, 0, data)
        else:
            vk.vkUpdateDescriptorSetWithTemplate(self.rig.device, self.set, template, data)
            vk.vkCmdBindDescriptorSets(commands, 1, self.layout, 0, 1, [self.set], 0, None)
        vk.ffi.memmove(data, bytes(128), 128)  # the application may reuse its memory at once
        vk.vkCmdDispatch(commands, WORDS // 64, 1, 1)
        self.rig.submit(commands)

    def data(self) -> Any:
        """Bytes that the application hands to the template."""
        ffi = self.vk.ffi
        raw = ffi.new("char[128]")
        for i, buffer in enumerate((self.source, self.target)):
            info = ffi.cast("VkDescriptorBufferInfo *", raw + OFFSET + i * STRIDE)
            info.buffer, info.offset, info.range = buffer, 0, 4 * WORDS
        return raw

    def close(self, *templates: Any) -> None:
        """Destroys everything."""
        vk, device = self.vk, self.rig.device
        for template in templates:
            vk.vkDestroyDescriptorUpdateTemplate(device, template, None)
        if self.pool is not None:
            vk.vkDestroyDescriptorPool(device, self.pool, None)
        vk.vkDestroyPipeline(device, self.pipeline, None)
        vk.vkDestroyShaderModule(device, self.module, None)
        vk.vkDestroyPipelineLayout(device, self.layout, None)
        vk.vkDestroyDescriptorSetLayout(device, self.set_layout, None)
        self.rig.close()


@pytest.fixture(params=[UPDATE, PUSH, PUSH_2])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def session() -> Iterator[Session]:
    with vkharness.attach(keep_trace=True) as attached:
        yield attached


def recorded(session: Session, name: str, barrier: bool) -> list[Block]:
    copy = Copy(make_rig(extensions=EXTENSIONS[name]), name)
    template = copy.template()
    copy.run(template, barrier)
    copy.close(template)
    assert session.internal_errors == []
    assert session.blocks is not None
    return session.blocks


def test_the_call_holds_what_the_template_made_of_its_data(session: Session, name: str) -> None:
    blocks = recorded(session, name, barrier=True)
    call = next(block for block in blocks if isinstance(block, Call) and block.name == name)
    buffers = [block.args["pBuffer"] for block in blocks if isinstance(block, Call) and block.name == "vkCreateBuffer"]
    assert (call.args.get(PUSH_INFO) or call.args)["pData"] is None
    assert call.args.get("pipelineBindPoint") == (None if name == UPDATE else 1)
    assert [(write["dstBinding"], write["descriptorType"]) for write in call.args["writes"]] == [(0, 7), (1, 7)]
    assert {write["dstSet"] for write in call.args["writes"]} == {call.args.get("descriptorSet", 0)}
    assert [write["pBufferInfo"] for write in call.args["writes"]] == [
        [{"buffer": buffer, "offset": 0, "range": 4 * WORDS}] for buffer in buffers
    ]


def test_it_is_judged_like_a_plain_write(session: Session, name: str) -> None:
    blocks = recorded(session, name, barrier=False)
    assert [(f.hazard, f.to_dict()["command"], f.to_dict()["prior_command"]) for f in session.findings] == [
        ("READ_AFTER_WRITE", "vkCmdDispatch", "vkCmdFillBuffer")
    ]
    assert session.unmodelled == {}
    plainly = Analysis().follow(plain(block) if isinstance(block, Call) else block for block in blocks)
    assert [finding.to_dict() for finding in plainly.findings] == [f.to_dict() for f in session.findings]


def test_with_the_barrier_it_is_clean(session: Session, name: str) -> None:
    recorded(session, name, barrier=True)
    assert session.verdict == "clean"


def test_the_trace_keeps_it_and_replays_it(session: Session, name: str, tmp_path: Path) -> None:
    blocks = recorded(session, name, barrier=True)
    save(tmp_path / "run.jsonl", blocks)
    assert load(tmp_path / "run.jsonl") == blocks
    with open_scene(blocks, "lavapipe-25" if name == PUSH_2 else "lavapipe") as scene:
        execute(scene, [*flatten(blocks)])
        contents = [
            bytes(scene.contents.read_buffer(buffer, 0, 4 * WORDS)) for buffer in scene.contents.resources.buffers
        ]
    assert contents == [bytes([7, 0, 0, 0]) * WORDS] * 2


def test_a_template_from_before_the_session_is_named(name: str) -> None:
    copy = Copy(make_rig(extensions=EXTENSIONS[name]), name)
    template = copy.template()
    with vkharness.attach() as session:
        copy.run(template, barrier=True)
    copy.close(template)
    assert session.unmodelled[name] == 1
    assert session.verdict == "unknown"


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [
        ("SAMPLED_IMAGE", "pImageInfo", [{"sampler": 0, "imageView": 0, "imageLayout": 5}] * 2),
        ("UNIFORM_TEXEL_BUFFER", "pTexelBufferView", [0, 0]),
    ],
)
def test_elements_of_an_entry_are_read_by_its_stride(kind: str, key: str, value: Any) -> None:
    import vulkan as vk

    from vkharness.record.decode import Decoder
    from vkharness.record.template_data import Templates
    from vkharness.trace.handles import HandleRegistry

    decoder = Decoder(HandleRegistry())
    templates = Templates(decoder.read, decoder.objects.table)
    number = ENUMS["VkDescriptorType"][f"VK_DESCRIPTOR_TYPE_{kind}"]
    entry = {"dstBinding": 3, "dstArrayElement": 1, "descriptorCount": 2, "descriptorType": number}
    info = {"templateType": 0, "pDescriptorUpdateEntries": [entry | {"offset": 8, "stride": 40}]}
    templates.created({"pDescriptorUpdateTemplate": 5, "pCreateInfo": info})
    data = vk.ffi.new("char[96]")
    for at in (8, 48):
        if kind == "SAMPLED_IMAGE":
            vk.ffi.cast("VkDescriptorImageInfo *", data + at).imageLayout = 5
    args = {"descriptorUpdateTemplate": 5, "descriptorSet": 9}
    (write,) = templates.read(args, int(vk.ffi.cast("uintptr_t", data)))["writes"]
    assert write[key] == value
    assert (write["dstSet"], write["dstBinding"], write["dstArrayElement"], write["descriptorCount"]) == (9, 3, 1, 2)
    templates.destroyed(5)
    assert templates.read(args, 1) == {}


def test_inline_uniform_data_stand_in_the_chain() -> None:
    import vulkan as vk

    from vkharness.record.decode import Decoder
    from vkharness.record.template_data import Templates
    from vkharness.trace.handles import HandleRegistry

    decoder = Decoder(HandleRegistry())
    templates = Templates(decoder.read, decoder.objects.table)
    entry = {
        "dstBinding": 0,
        "dstArrayElement": 4,
        "descriptorCount": 8,
        "descriptorType": VkDescriptorType.INLINE_UNIFORM_BLOCK,
    }
    info = {"templateType": 0, "pDescriptorUpdateEntries": [entry | {"offset": 2, "stride": 0}]}
    templates.created({"pDescriptorUpdateTemplate": 5, "pCreateInfo": info})
    data = vk.ffi.new("char[]", b"__bytes of the uniform block")
    args = {"descriptorUpdateTemplate": 5, "descriptorSet": 9}
    (write,) = templates.read(args, int(vk.ffi.cast("uintptr_t", data)))["writes"]
    assert write["pNext"] == {"sType": 1000138002, "pNext": None, "dataSize": 8, "pData": b"bytes of"}
