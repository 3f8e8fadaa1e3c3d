"""Storage images, sampled images and samplers in compute shaders."""

from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigImage, RigPipeline
from vkharness.spec.enums import VkImageLayout
from vkharness.suite import Rig, read_after_write, scenario, write_after_read, write_after_write

FROM_CLEAR = read_after_write("vkCmdDispatch", "vkCmdClearColorImage")
BEFORE_CLEAR = write_after_read("vkCmdClearColorImage", "vkCmdDispatch")
AFTER_CLEAR = write_after_write("vkCmdDispatch", "vkCmdClearColorImage")
RAW = read_after_write("vkCmdDispatch", "vkCmdDispatch")
WAR = write_after_read("vkCmdDispatch", "vkCmdDispatch")
WAW = write_after_write("vkCmdDispatch", "vkCmdDispatch")
COMPUTE = "COMPUTE_SHADER"
CLEARED = "ALL_TRANSFER/TRANSFER_WRITE"
WRITE, READ = "COMPUTE_SHADER/SHADER_STORAGE_WRITE", "COMPUTE_SHADER/SHADER_STORAGE_READ"
GENERAL = VkImageLayout.GENERAL
SMALL = (8, 8, 1)


def _store(rig: Rig) -> RigPipeline:
    return rig.compute("image_store_2d")


def _run(commands: Commands, pipeline: RigPipeline, value: int | None = None, **held: object) -> None:
    commands.bind(pipeline, commands.rig.descriptors(pipeline, **held))
    if value is not None:
        commands.push_constants(pipeline, value)
    commands.dispatch()


def _image(rig: Rig, commands: Commands, mips: int = 1, layers: int = 1) -> RigImage:
    """An image in the general layout, whose transition is ordered before everything."""
    image = rig.image(extent=SMALL, mips=mips, layers=layers)
    commands.transition(image)
    return image


def _bound(
    rig: Rig, image: RigImage, mips: tuple[int, int] = (0, 1), layers: tuple[int, int] = (0, 1)
) -> tuple[object, None, int]:
    return rig.view(image, mips=mips, layers=layers), None, GENERAL


@scenario(
    without={"store before load": [RAW]},
    weakened={"store before load / execution only": [RAW], "store before load / as a sampled read": [RAW]},
    rule="read-after-write,each-descriptor-type-has-its-access",
)
def scenario_storage_image_loaded_after_a_store(rig: Rig) -> None:
    """A storage image that one dispatch stores to and the next loads from needs a memory dependency."""
    target = rig.buffer()
    store = _store(rig)
    load = rig.compute("image_load_2d")
    with rig.submission() as commands:
        image = _image(rig, commands)
        _run(commands, store, 0x01234567, b0=_bound(rig, image))
        commands.barrier(
            "store before load",
            WRITE,
            READ,
            image=image,
            weaker={
                "execution only": {"src": COMPUTE, "dst": COMPUTE},
                "as a sampled read": {"dst": "COMPUTE_SHADER/SHADER_SAMPLED_READ"},
            },
        )
        _run(commands, load, b0=_bound(rig, image), b1=target)


@scenario(
    without={"copy before store": [WAR]},
    weakened={"copy before store / another stage": [WAR]},
    rule="write-after-read,a-written-variable-counts-as-written",
)
def scenario_storage_image_stored_after_a_copy(rig: Rig) -> None:
    """Of a shader that copies one image to another, only the target is written; the source may be overwritten later."""
    copy, store = rig.compute("image_copy_2d"), _store(rig)
    with rig.submission() as commands:
        source, target = _image(rig, commands), _image(rig, commands)
        _run(commands, copy, b0=_bound(rig, source), b1=_bound(rig, target))
        commands.barrier(
            "copy before store", COMPUTE, COMPUTE, sync2=False, weaker={"another stage": {"src": "ALL_TRANSFER"}}
        )
        _run(commands, store, 0x00112233, b0=_bound(rig, source))


@scenario(without={"once before twice": [WAW]}, rule="write-after-write,a-written-variable-counts-as-written")
def scenario_storage_image_changed_twice(rig: Rig) -> None:
    """Two dispatches that change one image in place need a memory dependency."""
    invert = rig.compute("image_invert_2d")
    with rig.submission() as commands:
        image = _image(rig, commands)
        _run(commands, invert, b0=_bound(rig, image))
        commands.barrier("once before twice", WRITE, "COMPUTE_SHADER/SHADER_READ|SHADER_WRITE")
        _run(commands, invert, b0=_bound(rig, image))


@scenario(
    without={"clear before sample": [FROM_CLEAR]},
    weakened={
        "clear before sample / as a storage read": [FROM_CLEAR],
        "clear before sample / for fragment shaders": [FROM_CLEAR],
        "clear before sample / as a shader read": [],
    },
    rule="shader-read-and-shader-write,each-descriptor-type-has-its-access",
)
def scenario_combined_image_sampler(rig: Rig) -> None:
    """Sampling is SHADER_SAMPLED_READ, of which SHADER_READ is a shorthand."""
    target = rig.buffer()
    sample = rig.compute("sample_2d")
    with rig.submission() as commands:
        image = _image(rig, commands)
        commands.clear_color(image)
        commands.barrier(
            "clear before sample",
            CLEARED,
            "COMPUTE_SHADER/SHADER_SAMPLED_READ",
            image=image,
            weaker={
                "as a storage read": {"dst": READ},
                "for fragment shaders": {"dst": "FRAGMENT_SHADER/SHADER_SAMPLED_READ"},
                "as a shader read": {"dst": "COMPUTE_SHADER/SHADER_READ"},
            },
        )
        _run(commands, sample, b0=(rig.view(image), rig.sampler(), GENERAL), b1=target)


@scenario(
    without={"clear before sample": [FROM_CLEAR], "sample before clear": [BEFORE_CLEAR]},
    rule="each-descriptor-type-has-its-access",
)
def scenario_image_and_sampler_apart(rig: Rig) -> None:
    """A sampled image with a sampler of its own: the image is accessed, the sampler is not memory."""
    target = rig.buffer()
    sample = rig.compute("sampled_separate")
    with rig.submission() as commands:
        image = _image(rig, commands)
        commands.clear_color(image, 0x01020304)
        commands.barrier("clear before sample", CLEARED, "COMPUTE_SHADER/SHADER_SAMPLED_READ", image=image)
        _run(commands, sample, b0=(rig.view(image), None, GENERAL), b1=rig.sampler(), b2=target)
        commands.barrier("sample before clear", COMPUTE, "CLEAR")
        commands.clear_color(image, 0x7F6F5F4F)


@scenario(
    weakened={"written / what is read": [read_after_write("vkCmdDispatch", "vkCmdDispatch")]},
    rule="reads-do-not-conflict",
)
def scenario_one_image_sampled_and_loaded(rig: Rig) -> None:
    """An image sampled by one dispatch and loaded by another is read twice, which conflicts with nothing."""
    first, second = rig.buffer(), rig.buffer()
    sample = rig.compute("sample_2d")
    load = rig.compute("image_load_2d")
    store = _store(rig)
    with rig.submission() as commands:
        image, other = _image(rig, commands), _image(rig, commands)
        _run(commands, store, 0x05060708, b0=_bound(rig, rig.choose("written", other, {"what is read": image})))
        _run(commands, sample, b0=(rig.view(image), rig.sampler(), GENERAL), b1=first)
        _run(commands, load, b0=_bound(rig, image), b1=second)


@scenario(
    weakened={"filled / the output": [write_after_write("vkCmdDispatch", "vkCmdFillBuffer")]},
    rule="asking-for-a-size-reads-nothing",
)
def scenario_size_of_images(rig: Rig) -> None:
    """Asking images for their size reads no texel: both may be in the middle of a clear."""
    target, other = rig.buffer(), rig.buffer()
    sizes = rig.compute("size_only")
    with rig.submission() as commands:
        stored, sampled = _image(rig, commands), _image(rig, commands)
        commands.clear_color(stored)
        commands.clear_color(sampled)
        commands.fill(rig.choose("filled", other, {"the output": target}), 0x4444)
        _run(commands, sizes, b0=_bound(rig, stored), b1=(rig.view(sampled), rig.sampler(), GENERAL), b2=target)


@scenario(
    weakened={"cleared mip / of the view": [AFTER_CLEAR], "cleared mip / all": [AFTER_CLEAR]},
    rule="a-descriptor-means-its-range",
)
def scenario_view_of_one_mip(rig: Rig) -> None:
    """A descriptor accesses the mip of its view; a clear of another mip does not conflict."""
    store = _store(rig)
    mips = rig.choose("cleared mip", (0, 1), {"of the view": (1, 1), "all": (0, 3)})
    with rig.submission() as commands:
        image = _image(rig, commands, mips=3)
        commands.clear_color(image, mips=mips)
        _run(commands, store, 0x0A0B0C0D, b0=_bound(rig, image, mips=(1, 1)))


@scenario(weakened={"cleared layers / with the view's": [FROM_CLEAR]}, rule="a-descriptor-means-its-range")
def scenario_view_of_one_layer(rig: Rig) -> None:
    """A descriptor accesses the layer of its view; clears of the layers around it do not conflict."""
    target = rig.buffer()
    load = rig.compute("image_load_2d")
    layers = rig.choose("cleared layers", ((0, 1), (2, 2)), {"with the view's": ((1, 2),)})
    with rig.submission() as commands:
        image = _image(rig, commands, layers=4)
        for each in layers:
            commands.clear_color(image, 0x21222324, layers=each)
        _run(commands, load, b0=_bound(rig, image, layers=(1, 1)), b1=target)
