"""Numbers of SPIR-V that the reader knows, under their names in the SPIR-V specification without the prefix.

Instructions that can declare, move or access a resource are named, and those that `execution` runs. `is_plain` says
of the others whether they are known to work on values alone; whatever is neither is met with caution (see flow.py),
so a number missing here can cost precision, never a missed access.
"""

from __future__ import annotations

from enum import IntEnum

from vkharness.spec.enums import VkShaderStage


class Op(IntEnum):
    """Instructions (SPIR-V specification, section 3.56)."""

    Nop = 0
    Undef = 1
    Name = 5
    String = 7
    Line = 8
    Extension = 10
    ExtInstImport = 11
    ExtInst = 12
    MemoryModel = 14
    EntryPoint = 15
    ExecutionMode = 16
    Capability = 17
    TypeVoid = 19
    TypeBool = 20
    TypeInt = 21
    TypeFloat = 22
    TypeVector = 23
    TypeMatrix = 24
    TypeImage = 25
    TypeSampler = 26
    TypeSampledImage = 27
    TypeArray = 28
    TypeRuntimeArray = 29
    TypeStruct = 30
    TypePointer = 32
    TypeFunction = 33
    TypeForwardPointer = 39
    ConstantTrue = 41
    ConstantFalse = 42
    Constant = 43
    ConstantComposite = 44
    ConstantNull = 46
    SpecConstantTrue = 48
    SpecConstantFalse = 49
    SpecConstant = 50
    SpecConstantComposite = 51
    SpecConstantOp = 52
    Function = 54
    FunctionParameter = 55
    FunctionEnd = 56
    FunctionCall = 57
    Variable = 59
    ImageTexelPointer = 60
    Load = 61
    Store = 62
    CopyMemory = 63
    CopyMemorySized = 64
    AccessChain = 65
    InBoundsAccessChain = 66
    PtrAccessChain = 67
    ArrayLength = 68
    InBoundsPtrAccessChain = 70
    Decorate = 71
    MemberDecorate = 72
    GroupDecorate = 74
    GroupMemberDecorate = 75
    VectorExtractDynamic = 77
    VectorInsertDynamic = 78
    VectorShuffle = 79
    CompositeConstruct = 80
    CompositeExtract = 81
    CompositeInsert = 82
    CopyObject = 83
    SampledImage = 86
    ImageSampleImplicitLod = 87
    ImageSampleExplicitLod = 88
    ImageFetch = 95
    ImageRead = 98
    ImageWrite = 99
    Image = 100
    ImageQueryFormat = 101
    ImageQuerySizeLod = 103
    ImageQuerySize = 104
    ImageQuerySamples = 107
    ConvertFToU = 109
    ConvertFToS = 110
    ConvertSToF = 111
    ConvertUToF = 112
    UConvert = 113
    SConvert = 114
    FConvert = 115
    ConvertPtrToU = 117
    ConvertUToPtr = 120
    Bitcast = 124
    SNegate = 126
    FNegate = 127
    IAdd = 128
    FAdd = 129
    ISub = 130
    FSub = 131
    IMul = 132
    FMul = 133
    UDiv = 134
    SDiv = 135
    FDiv = 136
    UMod = 137
    SRem = 138
    SMod = 139
    VectorTimesScalar = 142
    Any = 154
    All = 155
    LogicalEqual = 164
    LogicalNotEqual = 165
    LogicalOr = 166
    LogicalAnd = 167
    LogicalNot = 168
    Select = 169
    IEqual = 170
    INotEqual = 171
    UGreaterThan = 172
    SGreaterThan = 173
    UGreaterThanEqual = 174
    SGreaterThanEqual = 175
    ULessThan = 176
    SLessThan = 177
    ULessThanEqual = 178
    SLessThanEqual = 179
    FOrdEqual = 180
    FUnordEqual = 181
    FOrdNotEqual = 182
    FUnordNotEqual = 183
    FOrdLessThan = 184
    FUnordLessThan = 185
    FOrdGreaterThan = 186
    FUnordGreaterThan = 187
    FOrdLessThanEqual = 188
    FUnordLessThanEqual = 189
    FOrdGreaterThanEqual = 190
    FUnordGreaterThanEqual = 191
    ShiftRightLogical = 194
    ShiftRightArithmetic = 195
    ShiftLeftLogical = 196
    BitwiseOr = 197
    BitwiseXor = 198
    BitwiseAnd = 199
    Not = 200
    BitFieldInsert = 201
    BitFieldSExtract = 202
    BitFieldUExtract = 203
    BitReverse = 204
    BitCount = 205
    ControlBarrier = 224
    MemoryBarrier = 225
    AtomicLoad = 227
    AtomicStore = 228
    AtomicExchange = 229
    AtomicCompareExchange = 230
    AtomicIIncrement = 232
    AtomicIDecrement = 233
    AtomicIAdd = 234
    AtomicISub = 235
    AtomicSMin = 236
    AtomicUMin = 237
    AtomicSMax = 238
    AtomicUMax = 239
    AtomicAnd = 240
    AtomicOr = 241
    AtomicXor = 242
    Phi = 245
    LoopMerge = 246
    SelectionMerge = 247
    Label = 248
    Branch = 249
    BranchConditional = 250
    Switch = 251
    Return = 253
    ReturnValue = 254
    Unreachable = 255
    ImageSparseSampleImplicitLod = 305
    ImageSparseDrefGather = 315
    ImageSparseTexelsResident = 316
    NoLine = 317
    AtomicFlagTestAndSet = 318
    AtomicFlagClear = 319
    ImageSparseRead = 320
    ExecutionModeId = 331
    DecorateId = 332
    CopyLogical = 400
    PtrEqual = 401
    PtrDiff = 403
    UntypedVariableKHR = 4418
    TraceRayKHR = 4445
    ConvertUToAccelerationStructureKHR = 4447
    CooperativeMatrixLoadKHR = 4457
    CooperativeMatrixStoreKHR = 4458
    RayQueryInitializeKHR = 4473
    ImageSampleWeightedQCOM = 4480
    ImageBoxFilterQCOM = 4481
    ImageBlockMatchSSDQCOM = 4482
    ImageBlockMatchSADQCOM = 4483
    ImageBlockMatchWindowSSDQCOM = 4500
    ImageBlockMatchWindowSADQCOM = 4501
    ImageBlockMatchGatherSSDQCOM = 4502
    ImageBlockMatchGatherSADQCOM = 4503
    FragmentMaskFetchAMD = 5011
    FragmentFetchAMD = 5012
    TypeAccelerationStructureKHR = 5341
    AtomicFMinEXT = 5614
    AtomicFMaxEXT = 5615
    AtomicFAddEXT = 6035


class StorageClass(IntEnum):
    """Storage classes (SPIR-V specification, section 3.7)."""

    UniformConstant = 0
    Input = 1
    Uniform = 2
    Output = 3
    Workgroup = 4
    Private = 6
    Function = 7
    PushConstant = 9
    Image = 11
    StorageBuffer = 12
    TileImageEXT = 4172
    CallableDataKHR = 5328
    IncomingCallableDataKHR = 5329
    RayPayloadKHR = 5338
    HitAttributeKHR = 5339
    IncomingRayPayloadKHR = 5342
    PhysicalStorageBuffer = 5349
    HitObjectAttributeNV = 5385
    TaskPayloadWorkgroupEXT = 5402


class Decoration(IntEnum):
    """Decorations that the reader keeps (SPIR-V specification, section 3.20)."""

    RelaxedPrecision = 0
    SpecId = 1
    Block = 2
    BufferBlock = 3
    RowMajor = 4
    ArrayStride = 6
    MatrixStride = 7
    BuiltIn = 11
    NonWritable = 24
    NonReadable = 25
    Stream = 29
    Location = 30
    Component = 31
    Binding = 33
    DescriptorSet = 34
    Offset = 35
    XfbBuffer = 36
    XfbStride = 37
    FPFastMathMode = 40
    InputAttachmentIndex = 43


class ExecutionMode(IntEnum):
    """Execution modes that the reader keeps (SPIR-V specification, section 3.6)."""

    EarlyFragmentTests = 9
    PointMode = 10
    Xfb = 11
    DepthReplacing = 12
    DepthGreater = 14
    DepthLess = 15
    DepthUnchanged = 16
    LocalSize = 17
    Isolines = 25
    OutputPoints = 27
    OutputLineStrip = 28
    LocalSizeId = 38
    EarlyAndLateFragmentTestsAMD = 5017
    StencilRefReplacingEXT = 5027
    StencilRefUnchangedFrontAMD = 5079
    StencilRefGreaterFrontAMD = 5080
    StencilRefLessFrontAMD = 5081
    StencilRefUnchangedBackAMD = 5082
    StencilRefGreaterBackAMD = 5083
    StencilRefLessBackAMD = 5084
    OutputLinesEXT = 5269


DIM_BUFFER = 5
DIM_SUBPASS_DATA = 6
BUILT_IN_WORKGROUP_SIZE = 25

STAGES = {
    0: VkShaderStage.VERTEX,
    1: VkShaderStage.TESSELLATION_CONTROL,
    2: VkShaderStage.TESSELLATION_EVALUATION,
    3: VkShaderStage.GEOMETRY,
    4: VkShaderStage.FRAGMENT,
    5: VkShaderStage.COMPUTE,
    5267: VkShaderStage.TASK_EXT,
    5268: VkShaderStage.MESH_EXT,
    5313: VkShaderStage.RAYGEN_KHR,
    5314: VkShaderStage.INTERSECTION_KHR,
    5315: VkShaderStage.ANY_HIT_KHR,
    5316: VkShaderStage.CLOSEST_HIT_KHR,
    5317: VkShaderStage.MISS_KHR,
    5318: VkShaderStage.CALLABLE_KHR,
    5364: VkShaderStage.TASK_EXT,
    5365: VkShaderStage.MESH_EXT,
}
"""VkShaderStageFlagBits by ExecutionModel ("Shader Modules" of the Vulkan specification)."""


PLAIN_RANGES = (
    (0, 1),  # no-op, undef
    (8, 8),  # line
    (55, 55),  # function parameter: its value comes from the callers
    (77, 79),
    (84, 84),
    (101, 107),  # image queries: touch no texel
    (109, 117),
    (120, 120),  # an address to a pointer: no resource variable
    (126, 168),
    (170, 215),
    (218, 225),
    (246, 253),  # control flow
    (255, 257),
    (316, 317),
    (333, 366),  # group operations on values
    (401, 403),  # comparisons of pointers
    (4416, 4416),
    (4421, 4432),
    (4446, 4446),
    (4448, 4455),
    (4459, 4460),
    (4474, 4479),
    (5056, 5056),
    (5294, 5296),
    (5334, 5336),
    (5364, 5365),
    (5380, 5381),
    (5630, 5631),
    (6016, 6033),  # ray query results
)
"""Inclusive ranges of instructions that read and write no resource."""

_PLAIN = frozenset(op for first, last in PLAIN_RANGES for op in range(first, last + 1))


def is_plain(op: int) -> bool:
    """True for an instruction known to access no resource and to make no pointer or handle."""
    return op in _PLAIN


_NAMES = {int(op): f"Op{op.name}" for op in Op}


def op_name(op: int) -> str:
    """OpLoad for an instruction named here, Op and its number for another."""
    return _NAMES.get(op, f"Op{op}")


_MINIMUM = {
    Op.ExtInstImport: 1,
    Op.ExtInst: 4,
    Op.EntryPoint: 2,
    Op.ExecutionMode: 2,
    Op.ExecutionModeId: 2,
    Op.TypeVoid: 1,
    Op.TypeBool: 1,
    Op.TypeInt: 3,
    Op.TypeFloat: 2,
    Op.TypeVector: 3,
    Op.TypeMatrix: 3,
    Op.TypeImage: 8,
    Op.TypeSampler: 1,
    Op.TypeSampledImage: 2,
    Op.TypeArray: 3,
    Op.TypeRuntimeArray: 2,
    Op.TypeStruct: 1,
    Op.TypePointer: 3,
    Op.TypeFunction: 2,
    Op.TypeForwardPointer: 2,
    Op.TypeAccelerationStructureKHR: 1,
    Op.Constant: 3,
    Op.SpecConstant: 3,
    Op.SpecConstantOp: 3,
    Op.Function: 4,
    Op.FunctionParameter: 2,
    Op.FunctionCall: 3,
    Op.Variable: 3,
    Op.UntypedVariableKHR: 3,
    Op.ImageTexelPointer: 5,
    Op.Load: 3,
    Op.Store: 2,
    Op.CopyMemory: 2,
    Op.CopyMemorySized: 3,
    Op.AccessChain: 3,
    Op.InBoundsAccessChain: 3,
    Op.PtrAccessChain: 4,
    Op.InBoundsPtrAccessChain: 4,
    Op.ArrayLength: 4,
    Op.Decorate: 2,
    Op.DecorateId: 2,
    Op.MemberDecorate: 3,
    Op.GroupDecorate: 1,
    Op.GroupMemberDecorate: 1,
    Op.CompositeConstruct: 2,
    Op.CompositeExtract: 3,
    Op.CompositeInsert: 4,
    Op.CopyObject: 3,
    Op.SampledImage: 4,
    Op.ImageWrite: 3,
    Op.Image: 3,
    Op.Bitcast: 3,
    Op.ConvertUToPtr: 3,
    Op.Select: 5,
    Op.AtomicStore: 4,
    Op.AtomicFlagTestAndSet: 5,
    Op.AtomicFlagClear: 3,
    Op.Phi: 2,
    Op.Label: 1,
    Op.Branch: 1,
    Op.BranchConditional: 3,
    Op.Switch: 2,
    Op.ReturnValue: 1,
    Op.CopyLogical: 3,
    Op.TraceRayKHR: 11,
    Op.CooperativeMatrixLoadKHR: 4,
    Op.CooperativeMatrixStoreKHR: 3,
    Op.RayQueryInitializeKHR: 8,
}
MINIMUM_OPERANDS = dict.fromkeys(range(Op.TypeVoid, Op.TypeForwardPointer + 1), 1)
"""Fewest operand words of instructions whose operands are looked at by place."""
MINIMUM_OPERANDS |= {int(op): count for op, count in _MINIMUM.items()}
MINIMUM_OPERANDS |= dict.fromkeys(range(Op.ImageSampleImplicitLod, Op.ImageWrite), 3)
MINIMUM_OPERANDS |= dict.fromkeys(range(Op.ImageQueryFormat, Op.ImageQuerySamples + 1), 3)
MINIMUM_OPERANDS |= dict.fromkeys(range(Op.ImageSparseSampleImplicitLod, Op.ImageSparseTexelsResident), 3)
MATCHES_IMAGES = (
    *range(Op.ImageSampleWeightedQCOM, Op.ImageBlockMatchSADQCOM + 1),
    *range(Op.ImageBlockMatchWindowSSDQCOM, Op.ImageBlockMatchGatherSADQCOM + 1),
)
"""Instructions of SPV_QCOM_image_processing. All but the box filter read two images."""
MINIMUM_OPERANDS |= dict.fromkeys(MATCHES_IMAGES, 5)
MINIMUM_OPERANDS |= {op: 5 for op in range(Op.AtomicLoad, Op.AtomicXor + 1) if op != Op.AtomicStore}
MINIMUM_OPERANDS |= dict.fromkeys((Op.AtomicFMinEXT, Op.AtomicFMaxEXT, Op.AtomicFAddEXT), 6)
MINIMUM_OPERANDS |= dict.fromkeys((Op.ImageSparseRead, Op.FragmentMaskFetchAMD, Op.FragmentFetchAMD), 3)
MINIMUM_OPERANDS |= dict.fromkeys(range(Op.ConstantTrue, Op.ConstantFalse + 1), 2)
MINIMUM_OPERANDS |= dict.fromkeys(range(Op.ConstantComposite, Op.SpecConstantOp), 2)
