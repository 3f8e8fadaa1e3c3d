"""Dispatches computed on the host: what the project's shaders leave, what is refused, and the same on a driver."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from tests.shader.test_shader_results import FILL, RESULTS
from tests.support.drivers_here import FOUND
from tests.support.spirv_text import complaint, module
from vkharness.device.drivers import find_driver
from vkharness.device.process import Worker
from vkharness.findings import UserError
from vkharness.shader.execution.outside import NotInterpreted, ShaderImage, ShaderMemory
from vkharness.shader.execution.work_groups import execute_dispatch
from vkharness.shader.library import load, names
from vkharness.shader.reflect import reflect
from vkharness.shader.variables import BUFFERS

LIMIT = 1_000_000
ADDRESS = 0x1000_0000


class Bytes:
    """A memory of bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = bytearray(data)

    @property
    def size(self) -> int:
        return len(self.data)

    def read(self, offset: int, size: int) -> bytes:
        return bytes(self.data[offset : offset + size])

    def write(self, offset: int, data: bytes) -> None:
        self.data[offset : offset + len(data)] = data

    def located(self, offset: int) -> tuple[int, int]:
        return id(self), offset


class Texels:
    """An image of 4 x 4 texels, by coordinates; what was never written is 0."""

    texel_bytes = 16

    def __init__(self) -> None:
        self.held: dict[tuple[int, ...], tuple[int, ...]] = {}

    def size(self, level: int) -> tuple[int, ...]:
        return (4 >> level, 4 >> level)

    def read(self, coordinates: tuple[int, ...], at: int) -> tuple[int, int, int, int]:
        x, y, z, w = self.held.get(coordinates, (0, 0, 0, 0))
        return x, y, z, w

    def sample(self, coordinates: tuple[int, ...], lod: int | None) -> tuple[int, int, int, int]:
        raise UserError("nothing is sampled here")

    def write(self, coordinates: tuple[int, ...], texel: tuple[int, ...]) -> None:
        self.held[coordinates] = texel

    def located(self, coordinates: tuple[int, ...], at: int) -> tuple[int, Any]:
        return id(self), coordinates


class Bound:
    """Buffers by set, binding and element, one image for all; one memory lies at ADDRESS."""

    def __init__(self, push: bytes = b"", **buffers: bytes) -> None:
        """Buffers are named b0, b1 ... by their binding in set 0, b0_2 for element 2."""
        self.push_constants = Bytes(push)
        self.buffers: dict[tuple[int, int, int], Bytes] = {}
        for name, data in buffers.items():
            binding, _, element = name.removeprefix("b").partition("_")
            self.buffers[0, int(binding), int(element or 0)] = Bytes(data)
        self.behind = Bytes(bytes(4096))
        self.texels = Texels()

    def image(self, set: int, binding: int, element: int) -> ShaderImage:
        return self.texels

    def buffer(self, set: int, binding: int, element: int) -> ShaderMemory:
        try:
            return self.buffers[set, binding, element]
        except KeyError:
            raise UserError(f"nothing is bound to set {set}, binding {binding}, element {element}") from None

    def address(self, pointer: int) -> tuple[ShaderMemory, int]:
        if not ADDRESS <= pointer < ADDRESS + self.behind.size:
            raise UserError(f"no buffer is at 0x{pointer:x}")
        return self.behind, pointer - ADDRESS

    def words(self, binding: int = 0, element: int = 0) -> list[int]:
        return unpacked(self.buffers[0, binding, element].data)


def packed(*words: int) -> bytes:
    return struct.pack(f"<{len(words)}I", *words)


def unpacked(data: bytes | bytearray) -> list[int]:
    return list(struct.unpack(f"<{len(data) // 4}I", data))


def run(
    code: bytes,
    bound: Bound,
    groups: tuple[int, int, int] = (1, 1, 1),
    *,
    base: tuple[int, int, int] = (0, 0, 0),
    constants: dict[int, bytes] | None = None,
    limit: int = LIMIT,
    order: Callable[[int], Sequence[int]] = range,
) -> Bound:
    execute_dispatch(code, "main", groups, base, bound, constants or {}, limit, order)
    return bound


def table_row(row: tuple[str, str, list[list[int] | None], list[int], list[list[int]]]) -> list[list[int]]:
    """The words after one dispatch of the table of test_shader_results.py, computed on the host."""
    shader, kinds, before, push, _ = row
    places = [f"b{at}_{each}" for at, kind in enumerate(kinds) for each in range(4 if kind == "a" else 1)]
    held = {place: packed(*(words or FILL)) for place, words in zip(places, before, strict=True)}
    bound = Bound(packed(*push), **held)
    run(load(shader), bound, constants={0: packed(3)} if shader == "array_specialized_index" else {})
    return [unpacked(memory.data) for memory in bound.buffers.values()]


BUFFER_ROWS = [row for row in RESULTS if not set(row[1]) & set("tw")]


@pytest.mark.parametrize("row", BUFFER_ROWS, ids=[row[0] for row in BUFFER_ROWS])
def test_a_shader_leaves_what_drivers_leave(row: Any) -> None:
    assert table_row(row) == row[4]


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    if "lavapipe" not in FOUND:
        pytest.skip("lavapipe is not installed; ci/setup installs it")
    with Worker(find_driver("lavapipe"), packages=["tests"]) as running:
        yield running


def test_lavapipe_leaves_the_same_words(worker: Worker) -> None:
    for row in BUFFER_ROWS:
        shader, kinds, before, push, _ = row
        constants = [3] if shader == "array_specialized_index" else []
        arguments = {"shader": shader, "kinds": kinds, "held": before, "push": push, "constants": constants}
        assert worker.call("tests.support.shader_jobs:dispatch", arguments) == {"words": table_row(row)}, shader


def bound_for_all() -> Bound:
    """Something for every shader of the project that uses buffers alone."""
    bound = Bound(struct.pack("<QQ", ADDRESS, ADDRESS + 1024) + bytes(112))
    for set in range(2):
        for binding in range(3):
            for element in range(4):
                bound.buffers[set, binding, element] = Bytes(bytes(4096))
    return bound


PUSHED = {
    "array_remainder_index.comp": bytes(12),
    "array_dynamic_index.comp": packed(1, 7),
    "tile_words.comp": packed(0, 8, 7),
    "count_and_store.comp": packed(0, 7),
    "limited_words.comp": packed(0, 64, 7),
    "store_tile_2d.comp": packed(0, 0, 7),
    "store_layer_2d.comp": packed(0, 7),
    "fetch_level_2d.comp": packed(0),
    "stride_words.comp": packed(0, 20, 7),
    "uniform_stride.comp": packed(7),
}
"""Push constants that keep a shader inside its buffers; others take two addresses."""

REASONS = {
    "the shader asks for the size of a view of another sort": "texel_fetch_buffer texel_load_buffer texel_store_buffer",
    "OpRayQueryInitializeKHR is not interpreted": "trace_ray",
    "nothing is sampled here": "sample_2d sampled_separate",
}
"""Reason -> the shaders that are refused for it by the images of this test."""


def test_which_shaders_of_the_project_are_executed() -> None:
    computes, refused, with_images = [name for name in names() if name.endswith(".comp")], {}, set()
    for name in computes:
        bound = bound_for_all()
        bound.push_constants = Bytes(PUSHED[name]) if name in PUSHED else bound.push_constants
        if name == "uniform_address.comp":
            bound.buffers[0, 0, 0].write(0, struct.pack("<Q", ADDRESS))
        try:
            run(load(name), bound)
        except UserError as error:
            refused[name] = str(error)
        if any(use.kind not in BUFFERS for use in reflect(load(name), "main").uses):
            with_images.add(name)
    assert refused == {f"{name}.comp": reason for reason, shaders in REASONS.items() for name in shaders.split()}
    assert set(refused) <= with_images
    assert (len(computes), len(with_images), len(refused)) == (61, 24, 6)


ARRAY = """
%pair = OpTypeVector %uint 2
%uint3 = OpTypeVector %uint 3
%input_word = OpTypePointer Input %uint
%input3 = OpTypePointer Input %uint3
%three = OpConstant %uint 3
%eight = OpConstant %uint 8
%acquire_release = OpConstant %uint 264
"""
INDEX = "OpDecorate %local BuiltIn LocalInvocationIndex"


def store(value: str, at: str = "%zero", name: str = "place") -> str:
    return f"%{name} = OpAccessChain %word_pointer %a %zero {at}\nOpStore %{name} {value}\n"


def computed(body: str, *, words: int = 4, push: bytes = b"", **parts: Any) -> list[int]:
    """The words of %a after one dispatch of this body; the module is valid."""
    code = module(body, **parts)
    assert complaint(code) == ""
    return run(code, Bound(push, b0=bytes(4 * words), b1=bytes(4 * words))).words()


def value_of(operation: str, declarations: str = "") -> int:
    """Word 0 after storing %v, which `operation` makes."""
    return computed(f"{operation}\n{store('%v')}", declarations=declarations)[0]


SHARED = """
%shared_words = OpTypeArray %uint %eight
%shared_array = OpTypePointer Workgroup %shared_words
%shared_word = OpTypePointer Workgroup %uint
%shared = OpVariable %shared_array Workgroup
%local = OpVariable %input_word Input
"""
REVERSE = """
%i = OpLoad %uint %local
%mine = OpAccessChain %shared_word %shared %i
OpStore %mine %i
{barrier}
%last = OpISub %uint %eight %one
%other = OpISub %uint %last %i
%theirs = OpAccessChain %shared_word %shared %other
%v = OpLoad %uint %theirs
"""
EIGHT: dict[str, Any] = {"interface": "%local", "modes": "OpExecutionMode %main LocalSize 8 1 1", "decorations": INDEX}
BARRIER = "OpControlBarrier %two %two %acquire_release"


def test_a_control_barrier_lets_invocations_see_each_other() -> None:
    body = REVERSE.format(barrier=BARRIER) + store("%v", "%i")
    assert computed(body, words=8, declarations=ARRAY + SHARED, **EIGHT) == list(range(8))[::-1]


def test_shared_memory_that_nothing_wrote_is_refused() -> None:
    with pytest.raises(NotInterpreted, match="reads a variable that nothing has written"):
        computed(REVERSE.format(barrier="") + store("%v", "%i"), words=8, declarations=ARRAY + SHARED, **EIGHT)


def test_a_barrier_that_some_do_not_reach_is_refused() -> None:
    body = f"""
%i = OpLoad %uint %local
%first = OpIEqual %bool %i %zero
OpSelectionMerge %after None
OpBranchConditional %first %then %after
%then = OpLabel
{BARRIER}
OpBranch %after
%after = OpLabel
"""
    with pytest.raises(NotInterpreted, match="not all invocations of a work group reach the same control barrier"):
        computed(body, declarations=ARRAY + "%local = OpVariable %input_word Input", **EIGHT)


LOOP = """
OpBranch %head
%head = OpLabel
%sum = OpPhi %uint %zero %entry %more %next
%at = OpPhi %uint %zero %entry %step %next
OpLoopMerge %done %next None
OpBranch %test
%test = OpLabel
%goes = OpULessThan %bool %at %four
OpBranchConditional %goes %next %done
%next = OpLabel
%more = OpFunctionCall %uint %twice_and %sum %at
%step = OpIAdd %uint %at %one
OpBranch %head
%done = OpLabel
"""
TWICE = """
%twice_and = OpFunction %uint None %two_words
%x = OpFunctionParameter %uint
%y = OpFunctionParameter %uint
%inside = OpLabel
%double = OpIMul %uint %x %two
%both = OpIAdd %uint %double %y
OpReturnValue %both
OpFunctionEnd
"""
TWO_WORDS = "%two_words = OpTypeFunction %uint %uint %uint"


def test_loops_phis_and_calls() -> None:
    assert computed(LOOP + store("%sum"), declarations=TWO_WORDS, functions=TWICE)[0] == 11  # ((0*2+1)*2+2)*2+3


def test_more_instructions_than_the_limit_are_refused() -> None:
    code = module(LOOP + store("%sum"), declarations=TWO_WORDS, functions=TWICE)
    with pytest.raises(NotInterpreted, match="more than 20 instructions"):
        run(code, Bound(b0=bytes(16)), limit=20)
    endless = module(
        "OpBranch %h\n%h = OpLabel\nOpLoopMerge %d %c None\nOpBranch %c\n%c = OpLabel\nOpBranch %h\n%d = OpLabel"
    )
    with pytest.raises(NotInterpreted, match="more than 50000 instructions"):
        run(endless, Bound(), limit=50_000)
    with pytest.raises(NotInterpreted, match="more than 50000 instructions"):
        run(module(), Bound(), (1 << 20, 1 << 20, 1 << 20), limit=50_000)


@pytest.mark.parametrize(("selector", "found"), [("%zero", 4), ("%one", 2), ("%two", 2), ("%four", 4)])
def test_switches(selector: str, found: int) -> None:
    body = f"""
OpSelectionMerge %after None
OpSwitch {selector} %other 1 %low 2 %low
%low = OpLabel
OpBranch %after
%other = OpLabel
OpBranch %after
%after = OpLabel
%v = OpPhi %uint %two %low %four %other
{store("%v")}
"""
    assert computed(body)[0] == found


WIDE = """
%int = OpTypeInt 32 1
%minus_seven = OpConstant %int -7
%lowest = OpConstant %int -2147483648
%minus_one = OpConstant %int -1
%itwo = OpConstant %int 2
%all = OpConstant %uint 4294967295
%pattern = OpConstant %uint 0x12345678
%eight = OpConstant %uint 8
%thirty_two = OpConstant %uint 32
%half = OpConstant %float 0.5
%one_f = OpConstant %float 1
%third = OpConstant %float 0.333333343
%big = OpConstant %float 1e30
%tiny = OpConstant %float 1e-40
%large = OpConstant %uint 16777217
%pair = OpTypeVector %uint 2
%one_two = OpConstantComposite %pair %one %two
%four_all = OpConstantComposite %pair %four %all
"""
VALUES = [
    ("%v = OpIAdd %uint %all %two", 1),
    ("%v = OpISub %uint %one %two", 0xFFFFFFFF),
    ("%v = OpIMul %uint %all %all", 1),
    ("%v = OpSDiv %uint %minus_seven %itwo", 0xFFFFFFFD),
    ("%v = OpUDiv %uint %all %two", 0x7FFFFFFF),
    ("%v = OpShiftRightArithmetic %uint %minus_seven %one", 0xFFFFFFFC),
    ("%v = OpShiftRightLogical %uint %minus_seven %one", 0x7FFFFFFC),
    ("%v = OpBitFieldUExtract %uint %pattern %four %eight", 0x67),
    ("%v = OpBitFieldInsert %uint %pattern %all %four %eight", 0x12345FF8),
    ("%v = OpBitReverse %uint %pattern", 0x1E6A2C48),
    ("%v = OpBitCount %uint %pattern", 13),
    ("%v = OpExtInst %uint %glsl SMin %minus_seven %two", 0xFFFFFFF9),
    ("%v = OpExtInst %uint %glsl UMax %minus_seven %two", 0xFFFFFFF9),
    ("%v = OpExtInst %uint %glsl FindUMsb %pattern", 28),
    ("%c = OpSLessThan %bool %minus_seven %two\n%v = OpSelect %uint %c %four %two", 4),
    ("%c = OpULessThan %bool %minus_seven %two\n%v = OpSelect %uint %c %four %two", 2),
    ("%s = OpIAdd %pair %one_two %four_all\n%v = OpCompositeExtract %uint %s 1", 1),
    ("%s = OpVectorShuffle %pair %one_two %four_all 3 0\n%v = OpCompositeExtract %uint %s 0", 0xFFFFFFFF),
    ("%f = OpFAdd %float %half %one_f\n%v = OpBitcast %uint %f", 0x3FC00000),
    ("%f = OpConvertSToF %float %minus_seven\n%v = OpBitcast %uint %f", 0xC0E00000),
    ("%f = OpFNegate %float %half\n%v = OpBitcast %uint %f", 0xBF000000),
    ("%f = OpExtInst %float %glsl FMin %half %one_f\n%v = OpBitcast %uint %f", 0x3F000000),
    ("%q = OpFDiv %float %one_f %half\n%f = OpFAdd %float %q %half\n%v = OpConvertFToU %uint %f", 2),
    ("%z = OpFSub %float %half %half\n%f = OpFAdd %float %z %half\n%v = OpBitcast %uint %f", 0x3F000000),
    ("%q = OpFDiv %float %one_f %one_f\n%c = OpFOrdLessThan %bool %q %half\n%v = OpSelect %uint %c %four %two", 2),
]


@pytest.mark.parametrize(("operation", "value"), VALUES)
def test_operations_on_values(operation: str, value: int) -> None:
    assert value_of(operation, WIDE) == value


OPEN = [
    ("%v = OpUDiv %uint %one %zero", "division by zero"),
    ("%v = OpSDiv %uint %lowest %minus_one", "overflows"),
    ("%v = OpSMod %uint %minus_seven %itwo", "negative operand"),
    ("%v = OpShiftLeftLogical %uint %one %thirty_two", "shift of 32 bits by 32"),
    ("%f = OpFAdd %float %third %one_f\n%v = OpBitcast %uint %f", "not exact"),
    ("%f = OpFMul %float %big %big\n%v = OpBitcast %uint %f", "too large"),
    ("%f = OpFAdd %float %tiny %one_f\n%v = OpBitcast %uint %f", "flushed to zero"),
    ("%f = OpFSub %float %half %half\n%v = OpBitcast %uint %f", "sign of a zero"),
    ("%f = OpConvertUToF %float %large\n%v = OpBitcast %uint %f", "not exact"),
    ("%v = OpConvertFToU %uint %big", "does not fit"),
    ("%f = OpFDiv %float %one_f %half\n%v = OpBitcast %uint %f", "not exact"),
    ("%q = OpFDiv %float %one_f %half\n%v = OpConvertFToU %uint %q", "not exact"),
    (
        "%q = OpFDiv %float %one_f %one_f\n%c = OpFOrdLessThan %bool %q %one_f\n%v = OpSelect %uint %c %one %zero",
        "exact",
    ),
    ("%f = OpExtInst %float %glsl Sin %half\n%v = OpBitcast %uint %f", "instruction 13 of GLSL.std.450"),
    ("%u = OpUndef %uint\n%v = OpIAdd %uint %u %one", "OpUndef is not interpreted"),
]


@pytest.mark.parametrize(("operation", "reason"), OPEN)
def test_what_the_specification_leaves_open_is_refused(operation: str, reason: str) -> None:
    with pytest.raises(NotInterpreted, match=reason):
        value_of(operation, WIDE)


def test_relaxed_precision_is_refused() -> None:
    with pytest.raises(NotInterpreted, match="has relaxed precision"):
        computed("%v = OpIAdd %uint %one %two\n" + store("%v"), decorations="OpDecorate %v RelaxedPrecision")


MATRICES = """
%float2 = OpTypeVector %float 2
%matrix = OpTypeMatrix %float2 3
%holder = OpTypeStruct %matrix %matrix
%holder_pointer = OpTypePointer StorageBuffer %holder
%matrix_pointer = OpTypePointer StorageBuffer %matrix
%float_pointer = OpTypePointer StorageBuffer %float
%m = OpVariable %holder_pointer StorageBuffer
"""
LAYOUT = """
OpDecorate %m DescriptorSet 0
OpDecorate %m Binding 1
OpDecorate %holder Block
OpMemberDecorate %holder 0 Offset 0
OpMemberDecorate %holder 0 ColMajor
OpMemberDecorate %holder 0 MatrixStride 16
OpMemberDecorate %holder 1 Offset 48
OpMemberDecorate %holder 1 RowMajor
OpMemberDecorate %holder 1 MatrixStride 16
"""


def test_matrices_of_both_layouts() -> None:
    """A matrix is copied from columns to rows; then one component of the copy is read alone."""
    body = """
%from = OpAccessChain %matrix_pointer %m %zero
%to = OpAccessChain %matrix_pointer %m %one
%whole = OpLoad %matrix %from
OpStore %to %whole
%part = OpAccessChain %float_pointer %m %one %two %one
%f = OpLoad %float %part
%v = OpBitcast %uint %f
"""
    code = module(body + store("%v"), declarations=MATRICES, decorations=LAYOUT)
    assert complaint(code) == ""
    held = packed(1, 2, 0, 0, 3, 4, 0, 0, 5, 6, 0, 0) + bytes(32)
    bound = run(code, Bound(b0=bytes(16), b1=held))
    assert bound.words(1)[12:] == [1, 3, 5, 0, 2, 4, 6, 0]
    assert bound.words()[0] == 6


def test_bases_and_orders() -> None:
    """tile_words writes what depends on the work group; atomic_exchange what depends on who came last."""
    base = run(load("tile_words"), Bound(packed(0, 16, 0), b0=bytes(1024)), (1, 1, 1), base=(1, 1, 0))
    assert [at for at, word in enumerate(base.words()) if word] == [
        16 * (8 + y) + 8 + x for y in range(8) for x in range(8) if x or y
    ]
    code = module(
        "%i = OpLoad %uint %local\n" + store("%i"),
        declarations=ARRAY + "%local = OpVariable %input_word Input",
        **EIGHT,
    )
    assert run(code, Bound(b0=bytes(4))).words() == [7]
    assert run(code, Bound(b0=bytes(4)), order=lambda count: range(count)[::-1]).words() == [0]


def test_the_size_of_a_work_group_is_specialized() -> None:
    code = module(
        "%i = OpLoad %uint %local\n%v = OpIAdd %uint %i %one\n" + store("%v", "%i"),
        declarations=ARRAY + "%local = OpVariable %input_word Input\n%x = OpSpecConstant %uint 1\n"
        "%size = OpSpecConstantComposite %uint3 %x %one %one",
        decorations=INDEX + "\nOpDecorate %x SpecId 5\nOpDecorate %size BuiltIn WorkgroupSize",
        interface="%local",
    )
    assert run(code, Bound(b0=bytes(16))).words() == [1, 0, 0, 0]
    assert run(code, Bound(b0=bytes(16)), constants={5: packed(3)}).words() == [1, 2, 3, 0]


def test_addresses() -> None:
    bound = Bound(struct.pack("<QQI", ADDRESS, ADDRESS + 64, 16))
    bound.behind.data[:64] = packed(*range(100, 116))
    run(load("address_copy"), bound)
    assert unpacked(bound.behind.data[64:128]) == list(range(100, 116))
    bound.push_constants = Bytes(struct.pack("<QQI", ADDRESS + 2, ADDRESS + 64, 16))
    with pytest.raises(NotInterpreted, match="is not aligned to 4"):
        run(load("address_copy"), bound)
    bound.push_constants = Bytes(struct.pack("<QQI", ADDRESS, ADDRESS - 4, 16))
    with pytest.raises(UserError, match="no buffer is at 0xffffffc"):
        run(load("address_copy"), bound)


def test_memory_outside_is_refused() -> None:
    with pytest.raises(NotInterpreted, match="writes 4 bytes at 256 of a memory of 256"):
        run(load("tile_words"), Bound(packed(1, 8, 7), b0=bytes(256)))
    with pytest.raises(NotInterpreted, match="descriptor 4 of an array of 4 does not exist"):
        run(load("array_dynamic_index"), Bound(packed(4, 7)))
    with pytest.raises(UserError, match="nothing is bound to set 0, binding 0"):
        run(load("fill_words"), Bound(packed(7)))


def test_bytes_that_are_no_shader_end_in_one_line() -> None:
    """Each word of a shader is replaced in turn: it is executed or refused, never answered with a traceback."""
    code, refused = load("sum_uniform"), 0
    for at in range(20, len(code), 4):
        for word in (0, 0x7FFFFFFF, 0x0001_0000 | 61):
            broken = code[:at] + packed(word) + code[at + 4 :]
            try:
                run(broken, Bound(b0=bytes(256), b1=bytes(256)), limit=20_000)
            except UserError as error:
                refused += 1
                assert "\n" not in str(error)
    assert refused > 100


def test_a_shader_reads_and_writes_texels() -> None:
    one, three_quarters, half, quarter = 0x3F800000, 0x3F400000, 0x3F000000, 0x3E800000
    bound = bound_for_all()
    bound.texels.held = {(x, y): (half, quarter, one, 0) for x in range(4) for y in range(4)}
    run(load("image_invert_2d"), bound)
    assert set(bound.texels.held.values()) == {(half, three_quarters, 0, one)}
