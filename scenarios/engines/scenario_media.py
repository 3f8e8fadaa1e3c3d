"""Frames of video as FFmpeg's filters handle them: an image for each plane with a timeline of its own, three queues."""

from vkharness.rig.core import RigImage
from vkharness.rig.host_copies import copy_to_image, copy_to_memory, host_image, host_transition
from vkharness.rig.queues import SemaphoreUse
from vkharness.suite import Rig, race, read_after_write, scenario, write_after_read

UPLOAD, DOWNLOAD, DISPATCH = "vkCmdCopyBufferToImage2", "vkCmdCopyImageToBuffer2", "vkCmdDispatch"
TO_IMAGE, TO_MEMORY, COPY = "vkCopyMemoryToImageEXT", "vkCopyImageToMemoryEXT", "vkCmdCopyImage"
EVERYTHING, COMPUTE = "ALL_COMMANDS", "COMPUTE_SHADER"
STORED = "COMPUTE_SHADER/SHADER_STORAGE_WRITE"
WRITTEN, COPIED = "ALL_TRANSFER/TRANSFER_WRITE", "ALL_TRANSFER/TRANSFER_READ"
WORDS = bytes(range(256))
LUMA, CHROMA = 0x10, 0x20
"""VK_IMAGE_ASPECT_PLANE_0_BIT and VK_IMAGE_ASPECT_PLANE_1_BIT."""


def _stored(rig: Rig, image: RigImage) -> tuple[object, None, int]:
    """A descriptor of a storage image."""
    return rig.view(image), None, rig.vk.VK_IMAGE_LAYOUT_GENERAL


@scenario(
    without={
        "uploaded before filtered": [race("READ_RACING_WRITE", DISPATCH, UPLOAD)],
        "filtered before the download": [race("READ_RACING_WRITE", DOWNLOAD, DISPATCH)],
    },
    weakened={"uploaded before filtered / by the timeline of luma": []},
    queues=["COMPUTE", "TRANSFER"],
    rule="queues-without-a-semaphore-race,a-value-covers-what-its-signal-covers",
)
def scenario_planes_with_timelines(rig: Rig) -> None:
    """Each plane of a frame is an image with a timeline. A frame is uploaded, filtered and downloaded on three queues;
    each step waits for the values of all planes that it uses, and signals the next ones. One submit wrote both planes,
    so that its signal of either timeline covers both."""
    graphics, compute, transfer = rig.queues
    planes, filtered = [rig.image() for _ in range(2)], [rig.image() for _ in range(2)]
    data, out, copy = rig.buffer(2048, data=WORDS * 8), rig.buffer(2048), rig.compute("image_copy_2d")
    uploaded, done = [rig.timeline() for _ in planes], [rig.timeline() for _ in planes]
    with rig.commands(queue=graphics) as upload:
        upload.transition(*planes, src=EVERYTHING, dst=WRITTEN)
        for number, plane in enumerate(planes):
            upload.buffer_to_image(data, plane, {"buffer_offset": 1024 * number}, v2=True)
    rig.submit(upload, signals=[SemaphoreUse(each, value=1) for each in uploaded], sync2=True)
    with rig.commands(queue=compute) as work:
        work.transition(*filtered, dst=STORED)
        for source, target in zip(planes, filtered, strict=True):
            work.run(copy, groups=(4, 1, 1), b0=_stored(rig, source), b1=_stored(rig, target))
    waits = [SemaphoreUse(each, COMPUTE, 1) for each in uploaded]
    waits = rig.choose("uploaded before filtered", waits, {"by the timeline of luma": waits[:1]}) or []
    rig.submit(work, waits=waits, signals=[SemaphoreUse(each, value=1) for each in done], sync2=True)
    with rig.commands(queue=transfer) as download:
        for number, plane in enumerate(filtered):
            download.image_to_buffer(plane, out, {"buffer_offset": 1024 * number}, v2=True)
    waits = rig.operation("filtered before the download", done[0], "COPY", 1)
    rig.submit(download, waits=waits, sync2=True)


@scenario(
    without={
        "the filter": [read_after_write(TO_MEMORY, COPY), write_after_read(TO_IMAGE, COPY)],
        "filtered before read": [read_after_write(TO_MEMORY, COPY)],
    },
    needs=["VK_EXT_host_image_copy"],
    rule="host-copies-access-images-on-the-host,a-submit-shows-host-writes-to-the-device",
)
def scenario_uploads_by_the_host(rig: Rig) -> None:
    """The host copies a frame into an image, the device makes another one of it, and the host copies that out. The next
    frame is copied over the first one when the device has read it."""
    source, target, done = host_image(rig), host_image(rig), rig.timeline()
    for each in (source, target):
        host_transition(rig, each)
    copy_to_image(rig, WORDS * 4, source)
    with rig.commands() as work:
        work.copy_image(source, target)
        work.barrier("filtered before read", "COPY/TRANSFER_WRITE", "HOST/HOST_READ")
    rig.submit(work, signals=[SemaphoreUse(done, value=1)], sync2=True)
    rig.host_wait_timeline("the filter", (done, 1))
    copy_to_memory(rig, target)
    copy_to_image(rig, bytes(1024), source)


@scenario(
    without={"both planes before the download": [read_after_write(DOWNLOAD, UPLOAD)]},
    weakened={"both planes before the download / of luma": [read_after_write(DOWNLOAD, UPLOAD)]},
    needs=["VK_KHR_sampler_ycbcr_conversion"],
    rule="image-regions-are-exact,read-after-write",
)
def scenario_planes_of_one_image(rig: Rig) -> None:
    """The planes of a format with several are aspects of one image: each has a copy and a barrier of its own."""
    image = rig.image("VK_FORMAT_G8_B8R8_2PLANE_420_UNORM", usage=0x3)
    data, out = rig.buffer(512, data=WORDS), rig.buffer(512)
    luma, chroma = {"aspect": LUMA}, {"aspect": CHROMA, "extent": (8, 8, 1), "buffer_offset": 256}
    with rig.submission() as commands:
        commands.transition(image, src=EVERYTHING, dst=WRITTEN, aspects=1)
        for part in (luma, chroma):
            commands.buffer_to_image(data, image, part, v2=True)
        whole = {"src": WRITTEN, "dst": COPIED, "image": image}
        commands.barriers(
            "both planes before the download",
            {**whole, "aspects": LUMA},
            {**whole, "aspects": CHROMA},
            weaker={"of luma": [{**whole, "aspects": LUMA}]},
        )
        for part in (luma, chroma):
            commands.image_to_buffer(image, out, part, v2=True)
