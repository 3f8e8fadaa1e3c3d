"""Promises of the specification that the fault driver can break, one at a time.

An entry here is a `struct breaking` of the same name in the C files, `breaks_` and the name with underscores;
promises.h says where. The sentences are those of the specification, without its markup.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from vkharness.findings import UserError

BREAKS = "VKHARNESS_BREAKS"
"""Environment variable: the name of the promise that the driver breaks in each process, at each call."""

FAMILIES = "VKHARNESS_FAMILIES"
"""Environment variable: where it is not empty, the driver has several queue families, whose work it runs late."""

SHADOWS = "VKHARNESS_SHADOWS"
"""Environment variable: where it is not empty, the driver has memory that is not HOST_COHERENT, which the host maps as
a copy."""

DEPENDENCIES = "Execution and Memory Dependencies"
HAPPENS_BEFORE = (
    "If an operation happens-before another operation, then the first operation must complete before the second "
    "operation is initiated."
)
COPIED = "Each source region specified by pRegions is copied from the source buffer to the destination region"
WAITS = (
    "When a batch is submitted to a queue via a queue submission, and it includes semaphores to be waited on, it "
    "defines a memory dependency between prior semaphore signal operations and the batch, and defines semaphore wait "
    "operations."
)
IMAGE_EXTENT = "imageExtent is the size in texels of the image to copy in width, height and depth."
BUFFERS_IMAGES = "Copying Data Between Buffers and Images"
OWNERSHIP = "Queue Family Ownership Transfer"
HOST_ACCESS = "Host Access to Device Memory Objects"
FLUSHED = (
    "vkFlushMappedMemoryRanges guarantees that host writes to the memory ranges described by pMemoryRanges are made "
    "available to the host memory domain"
)
INVALIDATED = (
    "vkInvalidateMappedMemoryRanges guarantees that device writes to the memory ranges described by pMemoryRanges, "
    "which have been made available to the host memory domain [...], are made visible to the host."
)


@dataclass(frozen=True, slots=True)
class BrokenDriver:
    """A driver that breaks one promise: what it does wrong, and the sentence and section that promise otherwise."""

    name: str
    promise: str
    """The promise that it breaks, in one line."""
    sentence: str
    section: str
    needs: str = ""
    """The variable with which the driver offers what the promise is about, and the driver behind it lacks."""
    claimed_by: tuple[str, ...] = ()
    """Scenarios that claim the promise: folders of the suite, or FOLDER/MODULE without what modules begin with."""


BROKEN_DRIVERS = (
    BrokenDriver(
        "fill-past-a-barrier",
        "a fill is over before a copy or dispatch behind a barrier begins",
        HAPPENS_BEFORE,
        DEPENDENCIES,
        claimed_by=("barrier", "access/buffers"),
    ),
    BrokenDriver(
        "fill-of-a-wrong-value",
        "a fill writes the word that it was given",
        "data is the 4-byte word written repeatedly to the buffer to fill size bytes of data.",
        "Filling Buffers",
        claimed_by=("access", "barrier", "host"),
    ),
    BrokenDriver(
        "update-past-a-barrier",
        "an update is over before a copy or dispatch behind a barrier begins",
        HAPPENS_BEFORE,
        DEPENDENCIES,
        claimed_by=("barrier", "draw", "descriptor/uniform", "descriptor/indirect"),
    ),
    BrokenDriver(
        "copy-past-a-barrier",
        "a copy between buffers is over before a copy or dispatch behind a barrier begins",
        HAPPENS_BEFORE,
        DEPENDENCIES,
        claimed_by=("barrier", "access"),
    ),
    BrokenDriver(
        "clear-past-a-barrier",
        "a clear of a colour image is over before a copy or dispatch behind a barrier begins",
        HAPPENS_BEFORE,
        DEPENDENCIES,
        claimed_by=("barrier", "access", "layout"),
    ),
    BrokenDriver(
        "update-last-byte-wrong",
        "an update writes every byte of its data",
        "pData is a pointer to the source data for the buffer update",
        "Updating Buffers",
        claimed_by=("access", "draw", "descriptor/uniform"),
    ),
    BrokenDriver(
        "fill-word-short",
        "a fill reaches the end of its range",
        "size is the number of bytes to fill",
        "Filling Buffers",
        claimed_by=("access", "barrier", "host"),
    ),
    BrokenDriver(
        "fill-word-too-many",
        "a fill stays in its range",
        "size is the number of bytes to fill",
        "Filling Buffers",
        claimed_by=("access/buffer_ranges", "barrier/ranges", "descriptor/ranges", "query/results"),
    ),
    BrokenDriver(
        "copy-word-short",
        "a copy between buffers copies all bytes of a region",
        "size is the number of bytes to copy.",
        "Copying Data Between Buffers",
        claimed_by=("access", "barrier"),
    ),
    BrokenDriver(
        "copy-from-wrong-offset",
        "a copy between buffers reads its source region",
        "srcOffset is the starting offset in bytes from the start of srcBuffer.",
        "Copying Data Between Buffers",
        claimed_by=("access", "barrier/memory", "host/writes"),
    ),
    BrokenDriver(
        "upload-row-short",
        "a copy to an image writes the last row of a region",
        IMAGE_EXTENT,
        BUFFERS_IMAGES,
        claimed_by=("access", "layout"),
    ),
    BrokenDriver(
        "download-row-short",
        "a copy from an image reads the last row of a region",
        IMAGE_EXTENT,
        BUFFERS_IMAGES,
        claimed_by=("access", "layout"),
    ),
    BrokenDriver(
        "clear-wrong-component",
        "a clear of a colour image writes each component",
        "Each specified range in pRanges is cleared to the value specified by pColor.",
        "Clearing Images Outside a Render Pass Instance",
        claimed_by=("access/images", "layout", "rendering/clears"),
    ),
    BrokenDriver(
        "blit-half-region",
        "a blit reads all of its source region",
        "For each element of the pRegions array, a blit operation is performed for the specified source and "
        "destination regions.",
        "Image Copies With Scaling",
        claimed_by=("access", "layout", "granite_backend"),
    ),
    BrokenDriver(
        "resolve-skipped",
        "a resolve writes its destination",
        "During the resolve the samples corresponding to each pixel location in the source are converted to a single "
        "sample before being written to the destination.",
        "Resolving Multisample Images",
        claimed_by=("access/resolves", "rendering/multisample"),
    ),
    BrokenDriver(
        "clear-op-loads",
        "the load operation CLEAR clears the render area",
        "VK_ATTACHMENT_LOAD_OP_CLEAR specifies that the contents within the render area will be cleared to a uniform "
        "value",
        "Render Pass Load Operations",
        claimed_by=("rendering",),
    ),
    BrokenDriver(
        "load-op-clears",
        "the load operation LOAD keeps what was there",
        "VK_ATTACHMENT_LOAD_OP_LOAD specifies that the previous contents of the image within the render area will be "
        "preserved as the initial values.",
        "Render Pass Load Operations",
        claimed_by=("rendering",),
    ),
    BrokenDriver(
        "store-op-discards",
        "the store operation STORE keeps what was rendered",
        "VK_ATTACHMENT_STORE_OP_STORE specifies the contents generated during the render pass and within the render "
        "area are written to memory.",
        "Render Pass Store Operations",
        claimed_by=("rendering",),
    ),
    BrokenDriver(
        "transition-loses-contents",
        "a layout transition from the layout of an image keeps what the image holds",
        "If the old layout matches the current layout of the image subresource range, the transition preserves the "
        "contents of that range.",
        "Image Layout Transitions",
        claimed_by=("layout", "event/transitions", "rendering/transitions"),
    ),
    BrokenDriver(
        "secondaries-reversed",
        "secondary command buffers are executed in the order in which they are listed",
        "pCommandBuffers is a pointer to an array of commandBufferCount secondary command buffer handles, which are "
        "recorded to execute in the primary command buffer in the order they are listed in the array.",
        "Secondary Command Buffer Execution",
        claimed_by=("secondary",),
    ),
    BrokenDriver(
        "several-barriers-ignored",
        "each barrier of a command with several is a dependency",
        "Each member of pMemoryBarriers, pBufferMemoryBarriers, and pImageMemoryBarriers defines a separate memory "
        "dependency.",
        "Events",
        claimed_by=("barrier",),
    ),
    BrokenDriver(
        "global-barrier-ignored",
        "a global memory barrier is a dependency for all memory",
        "Global memory barriers apply to memory accesses involving all memory objects that exist at the time of its "
        "execution.",
        "Global Memory Barriers",
        claimed_by=("barrier",),
    ),
    BrokenDriver(
        "buffer-barrier-ignored",
        "a buffer memory barrier is a dependency for its range",
        "That is, a memory dependency formed from a buffer memory barrier is scoped to access via the specified "
        "buffer range.",
        "Buffer Memory Barriers",
        claimed_by=("barrier",),
    ),
    BrokenDriver(
        "event-wait-ignored",
        "a wait for an event orders what came before the set before what comes after the wait",
        "When vkCmdWaitEvents2 is submitted to a queue, it inserts memory dependencies according to the elements of "
        "pDependencyInfos and each corresponding element of pEvents.",
        "Events",
        claimed_by=("event",),
    ),
    BrokenDriver(
        "event-reset-ignored",
        "a wait for an event that was reset waits for the set behind the reset",
        "When vkCmdResetEvent is submitted to a queue, it defines an execution dependency on commands that were "
        "submitted before it, and defines an event unsignal operation which resets the event to the unsignaled state.",
        "Events",
        claimed_by=("event",),
    ),
    BrokenDriver(
        "external-dependency-ignored",
        "a subpass dependency from outside orders what came before a render pass instance before its draws",
        "If srcSubpass is equal to VK_SUBPASS_EXTERNAL, the first synchronization scope includes commands that occur "
        "earlier in submission order than the vkCmdBeginRenderPass used to begin the render pass instance.",
        "Render Pass Creation",
        claimed_by=("rendering",),
    ),
    BrokenDriver(
        "indirect-read-early",
        "an indirect dispatch reads its parameters when it is executed",
        "vkCmdDispatchIndirect behaves similarly to vkCmdDispatch except that the parameters are read by the device "
        "from a buffer during execution.",
        "Dispatching Commands",
        claimed_by=("descriptor/indirect", "draw/indirect"),
    ),
    BrokenDriver(
        "push-constants-stale",
        "a draw or dispatch reads the push constants that were pushed before it",
        "Push constant values can be updated incrementally, causing shader stages in stageFlags to read the new data "
        "from pValues for push constants modified by this command",
        "Push Constant Updates",
        claimed_by=("descriptor", "draw"),
    ),
    BrokenDriver(
        "descriptor-set-stale",
        "a draw or dispatch uses the descriptor sets that were bound before it",
        "vkCmdBindDescriptorSets binds descriptor sets pDescriptorSets[0..descriptorSetCount-1] to set numbers "
        "[firstSet..firstSet+descriptorSetCount-1] for subsequent bound pipeline commands set by pipelineBindPoint.",
        "Descriptor Set Binding",
        claimed_by=("descriptor",),
    ),
    BrokenDriver(
        "dispatch-group-short",
        "a dispatch runs all of its workgroups",
        "When the command is executed, a global workgroup consisting of groupCountX × groupCountY × groupCountZ local "
        "workgroups is assembled.",
        "Dispatching Commands",
        claimed_by=("descriptor",),
    ),
    BrokenDriver(
        "draw-vertex-short",
        "a draw draws all of its vertices",
        "vertexCount is the number of vertices to draw.",
        "Programmable Primitive Shading",
        claimed_by=("draw", "rendering"),
    ),
    BrokenDriver(
        "scissor-ignored",
        "a draw writes nothing outside of the scissor rectangle",
        "Samples with coordinates outside the scissor rectangle at the corresponding ViewportIndex will have their "
        "coverage set to 0.",
        "Scissor Test",
        claimed_by=("draw", "rendering", "frames_in_flight"),
    ),
    BrokenDriver(
        "query-reset-ignored",
        "a query that was reset is not available",
        "When executed on a queue, this command sets the status of query indices [firstQuery, firstQuery + queryCount "
        "- 1] to unavailable.",
        "Query Operation",
        claimed_by=("query",),
    ),
    BrokenDriver(
        "fence-early",
        "a fence is signaled once the work of its submit is over",
        "fence is an optional handle to a fence to be signaled once all submitted command buffers have completed "
        "execution.",
        "Command Buffer Submission",
        claimed_by=("host",),
    ),
    BrokenDriver(
        "queue-wait-idle-early",
        "a wait for a queue ends once the work of the queue is over",
        "vkQueueWaitIdle is equivalent to having submitted a valid fence to every previously executed queue submission "
        "command that accepts a fence, then waiting for all of those fences to signal",
        "Wait Idle Operations",
        claimed_by=("host",),
    ),
    BrokenDriver(
        "device-wait-idle-early",
        "a wait for a device ends once the work of its queues is over",
        "vkDeviceWaitIdle is equivalent to calling vkQueueWaitIdle for all queues owned by device.",
        "Wait Idle Operations",
        claimed_by=("host",),
    ),
    BrokenDriver(
        "timeline-wait-early",
        "a wait for a timeline semaphore ends once its value is reached",
        "If the condition is not satisfied at the time vkWaitSemaphores is called, then vkWaitSemaphores will block "
        "and wait until the condition is satisfied or the timeout has expired, whichever is sooner.",
        "Host Operations on Semaphores",
        claimed_by=("timeline", "host"),
    ),
    BrokenDriver(
        "semaphore-wait-ignored",
        "a batch begins when the semaphores that it waits for are signaled",
        WAITS,
        "Semaphore Waiting",
        needs=FAMILIES,
        claimed_by=("semaphore", "queue"),
    ),
    BrokenDriver(
        "one-semaphore-enough",
        "a batch begins when all semaphores that it waits for are signaled",
        WAITS,
        "Semaphore Waiting",
        needs=FAMILIES,
        claimed_by=("semaphore", "queue"),
    ),
    BrokenDriver(
        "timeline-value-less",
        "a wait for a value of a timeline ends when that value is reached",
        "If the semaphore is a timeline semaphore, the wait completes when the counter is greater than or equal to the "
        "value that is waited for.",
        "Semaphore Waiting",
        needs=FAMILIES,
        claimed_by=("timeline",),
    ),
    BrokenDriver(
        "semaphore-signal-early",
        "a batch signals its semaphores when its work is over",
        "The first synchronization scope includes every command submitted in the same batch.",
        "Semaphore Signaling",
        needs=FAMILIES,
        claimed_by=("semaphore", "queue", "timeline"),
    ),
    BrokenDriver(
        "late-signal-ignored",
        "a batch waits for a value that the host, or another batch, signals after its submit",
        "If the semaphore is a timeline semaphore, the wait completes when the counter is greater than or equal to the "
        "value that is waited for.",
        "Semaphore Waiting",
        needs=FAMILIES,
        claimed_by=("timeline", "event/late"),
    ),
    BrokenDriver(
        "acquire-loses-contents",
        "an acquire that matches its release keeps what the resource holds",
        "The buffer range or image subresource range specified in an acquire operation must match exactly that of a "
        "previous release operation.",
        OWNERSHIP,
        needs=FAMILIES,
        claimed_by=("queue/ownership",),
    ),
    BrokenDriver(
        "release-makes-nothing-available",
        "a release makes what its family wrote available to the family that acquires",
        "The release operation happens-after the availability operation.",
        OWNERSHIP,
        needs=FAMILIES,
        claimed_by=("queue/ownership",),
    ),
    BrokenDriver(
        "copy-sees-old-bytes",
        "a copy sees what a fill or an update wrote before a barrier, and not what was there before",
        "A memory dependency is an execution dependency which includes availability and visibility operations",
        DEPENDENCIES,
        claimed_by=("barrier", "access/buffers"),
    ),
    BrokenDriver(
        "host-writes-late",
        "a submit shows the device what the host wrote before",
        "When batches of command buffers are submitted to a queue via a queue submission command, it defines a memory "
        "dependency with prior host operations, and execution of command buffers submitted to the queue.",
        "Host Write Ordering Guarantees",
        claimed_by=("host/writes", "host/non_coherent"),
    ),
    BrokenDriver(
        "fence-status-early",
        "vkGetFenceStatus says that a fence is signaled once the work of its submit is over",
        "fence is an optional handle to a fence to be signaled once all submitted command buffers have completed "
        "execution.",
        "Command Buffer Submission",
        claimed_by=("host/polls",),
    ),
    BrokenDriver(
        "counter-early",
        "vkGetSemaphoreCounterValue gives the value that was reached",
        "To query the current counter value of a semaphore created with a VkSemaphoreType of "
        "VK_SEMAPHORE_TYPE_TIMELINE from the host, call",
        "Semaphores",
        claimed_by=("host/polls", "timeline"),
    ),
    BrokenDriver(
        "flush-ignored",
        "a flush makes what the host wrote available",
        FLUSHED,
        HOST_ACCESS,
        needs=SHADOWS,
        claimed_by=("host/non_coherent",),
    ),
    BrokenDriver(
        "flush-atom-short",
        "a flush reaches the end of its range",
        FLUSHED,
        HOST_ACCESS,
        needs=SHADOWS,
        claimed_by=("host/non_coherent",),
    ),
    BrokenDriver(
        "flush-from-start",
        "a flush begins at the offset of its range",
        FLUSHED,
        HOST_ACCESS,
        needs=SHADOWS,
        claimed_by=("host/non_coherent",),
    ),
    BrokenDriver(
        "flush-one-range",
        "a flush flushes each of its ranges",
        FLUSHED,
        HOST_ACCESS,
        needs=SHADOWS,
        claimed_by=("host/non_coherent",),
    ),
    BrokenDriver(
        "invalidate-ignored",
        "an invalidate shows the host what the device wrote",
        INVALIDATED,
        HOST_ACCESS,
        needs=SHADOWS,
        claimed_by=("host/non_coherent",),
    ),
    BrokenDriver(
        "invalidate-atom-short",
        "an invalidate reaches the end of its range",
        INVALIDATED,
        HOST_ACCESS,
        needs=SHADOWS,
        claimed_by=("host/non_coherent",),
    ),
    BrokenDriver(
        "invalidate-from-start",
        "an invalidate begins at the offset of its range",
        INVALIDATED,
        HOST_ACCESS,
        needs=SHADOWS,
        claimed_by=("host/non_coherent",),
    ),
    BrokenDriver(
        "invalidate-one-range",
        "an invalidate is about each of its ranges",
        INVALIDATED,
        HOST_ACCESS,
        needs=SHADOWS,
        claimed_by=("host/non_coherent",),
    ),
    BrokenDriver(
        "invalidate-stale",
        "an invalidate shows the host what the last submit wrote, and not what was there before",
        INVALIDATED,
        HOST_ACCESS,
        needs=SHADOWS,
        claimed_by=("host/non_coherent",),
    ),
)
"""In the order in which they are tried."""


def promises_named(names: Collection[str]) -> list[BrokenDriver]:
    """The drivers of these names, or all without a name. Raises `UserError` for a name that none has."""
    unknown = sorted({*names} - {each.name for each in BROKEN_DRIVERS})
    if unknown:
        raise UserError(f"no promise is called {', '.join(unknown)} (docs/broken_drivers.md has their names)")
    return [each for each in BROKEN_DRIVERS if not names or each.name in names]
