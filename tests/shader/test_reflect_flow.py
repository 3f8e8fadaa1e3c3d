"""How pointers and handles are followed, on SPIR-V that GLSL cannot express."""

from __future__ import annotations

import pytest

from tests.shader.test_reflect import claims
from tests.support.spirv_text import assemble, complaint, module
from vkharness.findings import UserError
from vkharness.shader.reflect import reflect

WORD_OF = "%word_{0} = OpAccessChain %word_pointer %{0} %zero %zero\n"
VARIABLE_POINTERS = "OpCapability VariablePointers"
READ_A, READ_B = "0.0 storage_buffer read 0+4", "0.1 storage_buffer read 0+4"
WRITE_A, WRITE_B = "0.0 storage_buffer write 0+4", "0.1 storage_buffer write 0+4"


def valid(*args: str, **parts: str) -> bytes:
    code = module(*args, **parts)
    assert complaint(code) == ""
    return code


def test_a_function_that_nothing_calls_is_ignored() -> None:
    dead = f"""
%dead = OpFunction %void None %function
%dead_entry = OpLabel
{WORD_OF.format("b")} OpStore %word_b %one
OpReturn
OpFunctionEnd
"""
    assert claims(valid(WORD_OF.format("a") + "OpStore %word_a %one", functions=dead)) == [WRITE_A]


def test_calls_are_followed_through_pointer_parameters() -> None:
    declarations = "%taking = OpTypeFunction %void %word_pointer"
    functions = """
%outer = OpFunction %void None %taking
%p = OpFunctionParameter %word_pointer
%outer_entry = OpLabel
%outer_call = OpFunctionCall %void %inner %p
OpReturn
OpFunctionEnd
%inner = OpFunction %void None %taking
%q = OpFunctionParameter %word_pointer
%inner_entry = OpLabel
%value = OpLoad %uint %q
OpReturn
OpFunctionEnd
"""
    body = WORD_OF.format("b") + "%call = OpFunctionCall %void %outer %word_b"
    code = module(body, declarations=declarations, functions=functions, capabilities=VARIABLE_POINTERS)
    assert complaint(code) == ""
    assert claims(code) == [READ_B]


def test_each_caller_of_a_function_counts() -> None:
    declarations = "%taking = OpTypeFunction %void %word_pointer"
    functions = """
%store = OpFunction %void None %taking
%p = OpFunctionParameter %word_pointer
%store_entry = OpLabel
OpStore %p %one
OpReturn
OpFunctionEnd
"""
    calls = "%c1 = OpFunctionCall %void %store %word_a\n%c2 = OpFunctionCall %void %store %word_b"
    body = WORD_OF.format("a") + WORD_OF.format("b") + calls
    code = valid(body, declarations=declarations, functions=functions, capabilities=VARIABLE_POINTERS)
    assert claims(code) == [WRITE_A, WRITE_B]


def test_a_returned_pointer_is_followed() -> None:
    declarations = "%giving = OpTypeFunction %word_pointer"
    functions = f"""
%choose = OpFunction %word_pointer None %giving
%choose_entry = OpLabel
{WORD_OF.format("b")}OpReturnValue %word_b
OpFunctionEnd
"""
    body = "%p = OpFunctionCall %word_pointer %choose\nOpStore %p %one"
    code = valid(body, declarations=declarations, functions=functions, capabilities=VARIABLE_POINTERS)
    assert claims(code) == [WRITE_B]


def test_a_selected_pointer_may_be_either() -> None:
    body = WORD_OF.format("a") + WORD_OF.format("b")
    body += "%p = OpSelect %word_pointer %true %word_a %word_b\n%value = OpLoad %uint %p"
    assert claims(valid(body, capabilities=VARIABLE_POINTERS)) == [READ_A, READ_B]


def test_a_phi_that_walks_a_buffer_may_be_anywhere_in_it() -> None:
    body = f"""
{WORD_OF.format("a")}OpBranch %loop
%loop = OpLabel
%p = OpPhi %word_pointer %word_a %entry %next %again
OpLoopMerge %done %again None
OpBranch %inside
%inside = OpLabel
%value = OpLoad %uint %p
OpBranch %again
%again = OpLabel
%next = OpPtrAccessChain %word_pointer %p %one
OpBranchConditional %true %loop %done
%done = OpLabel
"""
    decorations = "OpDecorate %word_pointer ArrayStride 4"
    assert claims(valid(body, capabilities=VARIABLE_POINTERS, decorations=decorations)) == ["0.0 storage_buffer read"]


def test_a_pointer_kept_in_private_memory_is_followed() -> None:
    declarations = "%kept = OpTypePointer Private %word_pointer\n%slot = OpVariable %kept Private"
    body = "%p = OpLoad %word_pointer %slot\n%value = OpLoad %uint %p\n"
    body += WORD_OF.format("b") + "OpStore %slot %word_b"
    code = module(body, declarations=declarations, capabilities=VARIABLE_POINTERS)
    assert complaint(code) == ""
    assert claims(code) == [READ_B], "also when the load comes first: flow is not analysed"


def test_copy_memory_reads_one_side_and_writes_the_other() -> None:
    body = WORD_OF.format("a") + WORD_OF.format("b") + "OpCopyMemory %word_a %word_b"
    assert claims(valid(body)) == [WRITE_A, READ_B]


def test_copy_object_moves_a_pointer() -> None:
    body = WORD_OF.format("a") + "%same = OpCopyObject %word_pointer %word_a\nOpStore %same %one"
    assert claims(valid(body)) == [WRITE_A]


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        ("%v = OpAtomicLoad %uint %word_a %one %zero", READ_A),
        ("OpAtomicStore %word_a %one %zero %one", WRITE_A),
        ("%v = OpAtomicIIncrement %uint %word_a %one %zero", "0.0 storage_buffer atomic 0+4"),
        ("%v = OpAtomicXor %uint %word_a %one %zero %two", "0.0 storage_buffer atomic 0+4"),
        ("%v = OpAtomicCompareExchange %uint %word_a %one %zero %zero %two %zero", "0.0 storage_buffer atomic 0+4"),
    ],
)
def test_an_atomic_is_a_read_a_write_or_both(instruction: str, expected: str) -> None:
    assert claims(valid(WORD_OF.format("a") + instruction)) == [expected]


def test_an_atomic_beside_a_store_is_no_longer_only_atomic() -> None:
    body = WORD_OF.format("a") + "%v = OpAtomicXor %uint %word_a %one %zero %two\nOpStore %word_a %one"
    (use,) = reflect(valid(body), "main").uses
    assert (use.reads, use.writes, use.atomics, use.plain_writes) == (True, True, True, True)


def test_modf_writes_through_its_pointer() -> None:
    declarations = """
%floats = OpTypeStruct %float
%floats_pointer = OpTypePointer StorageBuffer %floats
%float_pointer = OpTypePointer StorageBuffer %float
%c = OpVariable %floats_pointer StorageBuffer
%half = OpConstant %float 0.5
"""
    decorations = "OpMemberDecorate %floats 0 Offset 8\nOpDecorate %floats Block\n"
    decorations += "OpDecorate %c DescriptorSet 2\nOpDecorate %c Binding 9"
    body = "%p = OpAccessChain %float_pointer %c %zero\n%f = OpExtInst %float %glsl Modf %half %p"
    assert claims(valid(body, declarations=declarations, decorations=decorations)) == ["2.9 storage_buffer write 8+4"]


def test_an_old_style_buffer_block_is_a_storage_buffer() -> None:
    declarations = """
%old = OpTypeStruct %words
%old_pointer = OpTypePointer Uniform %old
%old_word = OpTypePointer Uniform %uint
%c = OpVariable %old_pointer Uniform
"""
    decorations = "OpMemberDecorate %old 0 Offset 0\nOpDecorate %old BufferBlock\n"
    decorations += "OpDecorate %c DescriptorSet 0\nOpDecorate %c Binding 2"
    body = "%p = OpAccessChain %old_word %c %zero %four\nOpStore %p %one"
    code = module(body, declarations=declarations, decorations=decorations)
    assert claims(code) == ["0.2 storage_buffer write 16+4"], "BufferBlock ended with SPIR-V 1.3"


@pytest.mark.parametrize(
    ("decorations", "expected"),
    [
        ("OpDecorate %a NonReadable", "0.0 storage_buffer write 0+4"),
        ("OpMemberDecorate %block 0 NonReadable", "0.0 storage_buffer write 0+4"),
        ("OpDecorate %a NonWritable", "0.0 storage_buffer read 0+4"),
        ("OpMemberDecorate %block 0 NonWritable", "0.0 storage_buffer read 0+4"),
        ("", "0.0 storage_buffer read 0+4 write 0+4"),
        ("OpDecorate %group NonReadable\n%group = OpDecorationGroup\nOpGroupDecorate %group %a", WRITE_A),
        ("OpDecorate %group NonWritable\n%group = OpDecorationGroup\nOpGroupMemberDecorate %group %block 0", READ_A),
    ],
)
def test_decorations_restrict_what_a_shader_does(decorations: str, expected: str) -> None:
    body = WORD_OF.format("a") + "%v = OpLoad %uint %word_a\nOpStore %word_a %v"
    assert claims(module(body, decorations=decorations)) == [expected]


MATRIX = """
%v2 = OpTypeVector %float 2
%m3x2 = OpTypeMatrix %v2 3
%row = OpTypeArray %uint %four
%three = OpConstant %uint 3
%grid = OpTypeArray %row %three
%parts = OpTypeStruct %uint %m3x2 %m3x2 %grid
%parts_pointer = OpTypePointer StorageBuffer %parts
%v2_pointer = OpTypePointer StorageBuffer %v2
%f_pointer = OpTypePointer StorageBuffer %float
%m_pointer = OpTypePointer StorageBuffer %m3x2
%row_pointer = OpTypePointer StorageBuffer %row
%c = OpVariable %parts_pointer StorageBuffer
"""
MATRIX_DECORATIONS = """
OpDecorate %row ArrayStride 4
OpDecorate %grid ArrayStride 16
OpDecorate %parts Block
OpMemberDecorate %parts 0 Offset 0
OpMemberDecorate %parts 1 Offset 16
OpMemberDecorate %parts 1 ColMajor
OpMemberDecorate %parts 1 MatrixStride 16
OpMemberDecorate %parts 2 Offset 64
OpMemberDecorate %parts 2 RowMajor
OpMemberDecorate %parts 2 MatrixStride 16
OpMemberDecorate %parts 3 Offset 96
OpDecorate %c DescriptorSet 0
OpDecorate %c Binding 2
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("%p = OpAccessChain %v2_pointer %c %one %two\n%v = OpLoad %v2 %p", "48+8"),
        ("%p = OpAccessChain %f_pointer %c %one %two %one\n%v = OpLoad %float %p", "52+4"),
        ("%p = OpAccessChain %m_pointer %c %one\n%v = OpLoad %m3x2 %p", "16+48"),
        ("%p = OpAccessChain %f_pointer %c %two %one %one\n%v = OpLoad %float %p", "64+32"),
        ("%p = OpAccessChain %m_pointer %c %two\n%v = OpLoad %m3x2 %p", "64+32"),
        ("%p = OpAccessChain %word_pointer %c %three %two %one\n%v = OpLoad %uint %p", "132+4"),
        ("%q = OpAccessChain %row_pointer %c %three %one\n%v = OpLoad %row %q", "112+16"),
        (
            "%i = OpCopyObject %uint %two\n%p = OpAccessChain %word_pointer %c %three %i %one\n%v = OpLoad %uint %p",
            "96+48",
        ),
        (
            "%i = OpCopyObject %uint %two\n%p = OpAccessChain %word_pointer %c %three %one %i\n%v = OpLoad %uint %p",
            "112+16",
        ),
        ("%v = OpLoad %parts %c", "0+144"),
        ("%i = OpArrayLength %uint %a 0\n%p = OpAccessChain %v2_pointer %c %one %i\n%v = OpLoad %v2 %p", "16+48"),
    ],
)
def test_bytes_follow_the_layout_decorations(body: str, expected: str) -> None:
    code = valid(body, declarations=MATRIX, decorations=MATRIX_DECORATIONS)
    assert claims(code)[-1] == f"0.2 storage_buffer read {expected}"


def test_ranges_that_touch_are_joined() -> None:
    body = "".join(
        f"%p{i} = OpAccessChain %word_pointer %a %zero %{index}\nOpStore %p{i} %one\n"
        for i, index in enumerate(("four", "zero", "one", "zero"))
    )
    assert claims(valid(body)) == ["0.0 storage_buffer write 0+8 16+4"]


ARRAY = """
%s = OpTypeStruct %words
%three = OpSpecConstant %uint 3
%sum = OpSpecConstantOp %uint IAdd %three %one
%six = OpSpecConstantOp %uint IMul %three %two
%row = OpTypeArray %s %three
%grid = OpTypeArray %row %two
%grid_pointer = OpTypePointer StorageBuffer %grid
%s_pointer = OpTypePointer StorageBuffer %s
%c = OpVariable %grid_pointer StorageBuffer
"""
ARRAY_DECORATIONS = """
OpDecorate %three SpecId 5
OpMemberDecorate %s 0 Offset 0
OpDecorate %s Block
OpDecorate %c DescriptorSet 0
OpDecorate %c Binding 2
"""


def test_arrays_of_arrays_of_descriptors_are_flattened() -> None:
    # Vulkan has no arrays of arrays of blocks, so spirv-val is not asked.
    body = "%p = OpAccessChain %word_pointer %c %one %two %zero %four\nOpStore %p %one"
    code = module(body, declarations=ARRAY, decorations=ARRAY_DECORATIONS)
    assert claims(code) == ["0.2[5] storage_buffer write 16+4"]
    assert [use.array_size for use in reflect(code, "main").uses] == [6]
    wider = reflect(code, "main", {5: (7).to_bytes(4, "little")}).uses
    assert [(use.array_size, use.elements) for use in wider] == [(14, (9,))]


def test_one_dynamic_index_makes_the_whole_array_used_that_way() -> None:
    body = """
%i = OpArrayLength %uint %a 0
%p = OpAccessChain %word_pointer %c %one %i %zero %four
OpStore %p %one
%q = OpAccessChain %word_pointer %c %zero %zero %zero %zero
%v = OpLoad %uint %q
"""
    code = module(body, declarations=ARRAY, decorations=ARRAY_DECORATIONS)
    assert claims(code)[1:] == ["0.2[any] storage_buffer read 0+4 write 16+4"]


RUNTIME_IMAGES = """
%image = OpTypeImage %float 2D 0 0 0 2 Rgba8
%images = OpTypeRuntimeArray %image
%images_pointer = OpTypePointer UniformConstant %images
%image_pointer = OpTypePointer UniformConstant %image
%c = OpVariable %images_pointer UniformConstant
%v4 = OpTypeVector %float 4
%u2 = OpTypeVector %uint 2
%origin = OpConstantComposite %u2 %zero %zero
%white = OpConstantNull %v4
%int = OpTypeInt 32 1
%s2 = OpTypeVector %int 2
"""
RUNTIME_IMAGES_DECORATIONS = "OpDecorate %c DescriptorSet 3\nOpDecorate %c Binding 1"


@pytest.mark.parametrize(("index", "expected"), [("%four", "3.1[4] storage_image write"), ("%i", "3.1[any] ")])
def test_a_runtime_array_of_images(index: str, expected: str) -> None:
    body = f"%i = OpCopyObject %uint %two\n%p = OpAccessChain %image_pointer %c {index}\n"
    body += "%loaded = OpLoad %image %p\nOpImageWrite %loaded %origin %white"
    capabilities = 'OpCapability RuntimeDescriptorArray\nOpExtension "SPV_EXT_descriptor_indexing"'
    code = valid(body, declarations=RUNTIME_IMAGES, decorations=RUNTIME_IMAGES_DECORATIONS, capabilities=capabilities)
    (use,) = reflect(code, "main").uses
    assert use.array_size == 0
    assert claims(code)[0].startswith(expected)


def test_image_queries_touch_no_texel() -> None:
    body = "%p = OpAccessChain %image_pointer %c %four\n%loaded = OpLoad %image %p\n"
    body += "%size = OpImageQuerySize %s2 %loaded"
    capabilities = "OpCapability RuntimeDescriptorArray\nOpCapability ImageQuery\n"
    capabilities += 'OpExtension "SPV_EXT_descriptor_indexing"'
    code = valid(body, declarations=RUNTIME_IMAGES, decorations=RUNTIME_IMAGES_DECORATIONS, capabilities=capabilities)
    assert claims(code) == ["3.1[4] storage_image"]


def test_a_ray_query_reads_its_acceleration_structure() -> None:
    declarations = """
%structure = OpTypeAccelerationStructureKHR
%query = OpTypeRayQueryKHR
%structure_pointer = OpTypePointer UniformConstant %structure
%query_pointer = OpTypePointer Private %query
%c = OpVariable %structure_pointer UniformConstant
%q = OpVariable %query_pointer Private
%v3 = OpTypeVector %float 3
%origin = OpConstantNull %v3
%near = OpConstantNull %float
"""
    body = "%t = OpLoad %structure %c\nOpRayQueryInitializeKHR %q %t %zero %one %origin %near %origin %near\n"
    body += "%more = OpRayQueryProceedKHR %bool %q"
    code = valid(
        body,
        declarations=declarations,
        decorations="OpDecorate %c DescriptorSet 0\nOpDecorate %c Binding 2",
        capabilities='OpCapability RayQueryKHR\nOpExtension "SPV_KHR_ray_query"',
    )
    assert claims(code) == ["0.2 acceleration_structure read"]
    assert reflect(code, "main").unmodelled == ()


ADDRESSES = """
%far = OpTypePointer PhysicalStorageBuffer %uint
%far_far = OpTypePointer PhysicalStorageBuffer %far
%long = OpTypeInt 64 0
%address = OpConstant %long 4096
"""
FAR_CAPABILITIES = "OpCapability PhysicalStorageBufferAddresses\nOpCapability Int64"


def test_memory_behind_a_known_address_is_followed() -> None:
    body = "%p = OpConvertUToPtr %far %address\nOpStore %p %one Aligned 4"
    entry = reflect(module(body, declarations=ADDRESSES, capabilities=FAR_CAPABILITIES), "main")
    assert entry.unmodelled == () and entry.uses == ()
    (touch,) = entry.addressed
    assert (touch.offset, touch.size, touch.certain) == (0, 4, True)


def test_memory_behind_an_address_from_memory_is_reported_as_unmodelled() -> None:
    body = "%p = OpConvertUToPtr %far_far %address\n%q = OpLoad %far %p Aligned 8\nOpStore %q %one Aligned 4"
    entry = reflect(module(body, declarations=ADDRESSES, capabilities=FAR_CAPABILITIES), "main")
    assert entry.unmodelled == ("PhysicalStorageBuffer",)


def test_an_unknown_instruction_reads_and_writes_what_it_names() -> None:
    code = bytearray(module(WORD_OF.format("a") + "OpStore %word_a %one\n%v = OpLoad %uint %word_a"))
    store = next(at for at in range(20, len(code), 4) if code[at : at + 4] == b"\x3e\0\3\0")
    code[store : store + 2] = (59999).to_bytes(2, "little")
    entry = reflect(bytes(code), "main")
    assert entry.unmodelled == ("Op59999",)
    assert [(use.reads, use.writes, use.write_ranges) for use in entry.uses] == [(True, True, None)]


TWO_STAGES = """
OpCapability Shader
OpMemoryModel Logical GLSL450
OpEntryPoint Vertex %v "main" %out
OpEntryPoint Fragment %f "main" %out
OpExecutionMode %f OriginUpperLeft
OpDecorate %out Location 4
%void = OpTypeVoid
%float = OpTypeFloat 32
%uint = OpTypeInt 32 0
%function = OpTypeFunction %void
%one = OpConstant %uint 1
%two = OpConstant %uint 2
%half = OpConstant %float 0.5
%pair = OpTypeArray %float %two
%pair_pointer = OpTypePointer Output %pair
%out_pointer = OpTypePointer Output %float
%out = OpVariable %pair_pointer Output
%all = OpConstantNull %pair
%v = OpFunction %void None %function
%ve = OpLabel
OpStore %out %all
OpReturn
OpFunctionEnd
%f = OpFunction %void None %function
%fe = OpLabel
{store}
OpReturn
OpFunctionEnd
"""


@pytest.mark.parametrize(
    ("store", "locations"),
    [
        ("OpStore %out %all", {4, 5}),
        ("%p = OpAccessChain %out_pointer %out %one\nOpStore %p %half", {5}),
        ("%i = OpCopyObject %uint %one\n%p = OpAccessChain %out_pointer %out %i\nOpStore %p %half", {4, 5}),
    ],
)
def test_the_stage_chooses_among_entry_points_of_one_name(store: str, locations: set[int]) -> None:
    code = assemble(TWO_STAGES.format(store=store))
    assert complaint(code) == ""
    with pytest.raises(UserError, match="2 entry points 'main'; the stage must choose one"):
        reflect(code, "main")
    assert reflect(code, "main", stage=0x1).outputs == frozenset()
    assert reflect(code, "main", stage=0x10).outputs == locations


@pytest.mark.parametrize(("value", "size"), [(None, (8, 2, 16)), (3, (8, 3, 24))])
def test_the_workgroup_size_follows_specialization(value: int | None, size: tuple[int, int, int]) -> None:
    declarations = """
%eight = OpConstant %uint 8
%y = OpSpecConstant %uint 2
%z = OpSpecConstantOp %uint IMul %y %eight
"""
    code = module(
        declarations=declarations,
        decorations="OpDecorate %y SpecId 1",
        modes="OpExecutionModeId %main LocalSizeId %eight %y %z",
        target="vulkan1.3",
    )
    given = {} if value is None else {1: value.to_bytes(4, "little")}
    assert reflect(code, "main", given).local_size == size
