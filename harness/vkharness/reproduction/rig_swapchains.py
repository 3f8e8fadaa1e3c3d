"""Swapchains as calls of the rig: on a surface without a window, and shown once before the stream begins.

One that is made later, mostly in place of another one, is not shown, since the host would wait in mid-stream for that.

The images that the stream acquires are numbered anew, in the order in which they are acquired first: a presentation
engine hands out whichever image it likes, and the smallest swapchain leaves it the least choice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from vkharness.findings import UserError
from vkharness.generated_text import python_string
from vkharness.reproduction.script import Script, word
from vkharness.rig.swapchains import USAGE
from vkharness.spec.command_classes import ACQUIRES, is_submit
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Block, Call
from vkharness.trace.references import references
from vkharness.trace.submits import batches


class SwapchainWriter:
    """Writes the swapchains of a stream, what is acquired of them and what is presented."""

    def __init__(self, script: Script, blocks: Sequence[Block]) -> None:
        self.script = script
        self._images: dict[int, list[int]] = {}
        """By swapchain, the ids of its images by index."""
        self._order: dict[int, dict[int, int]] = {}
        """By swapchain: the indices of the images that are needed, with their new ones."""
        self._replaced: dict[int, int] = {}
        """Swapchains to those that they retire."""
        self._held: Counter[int] = Counter()
        self._at_once: Counter[int] = Counter()
        """By swapchain: the images that are acquired and not presented, where a call is noted and at most."""
        self._unwaited: dict[int, None] = {}
        """Semaphores of acquires for which nothing waits."""
        self._late: set[int] = set()
        """Swapchains that are made after a submit."""
        calls = [block for block in blocks if isinstance(block, Call)]
        self._viewed = {call.args["pCreateInfo"]["image"] for call in calls if call.name == "vkCreateImageView"}
        """Images whose format matters to what is made of them."""
        first = next((call.index for call in calls if is_submit(call.name)), len(blocks) + 1)
        for call in calls:
            self._note(call)
            if main_name(call.name) == "vkCreateSwapchainKHR" and call.index > first:
                self._late.add(call.args["pSwapchain"])
        self._note_others({each.id for call in calls for each in references(call) if not each.made})

    @property
    def used(self) -> bool:
        """Whether the stream has a swapchain."""
        return bool(self._order)

    def _note(self, call: Call) -> None:
        name = main_name(call.name)
        if name == "vkCreateSwapchainKHR":
            self._order[call.args["pSwapchain"]] = {}
            self._replaced[call.args["pSwapchain"]] = call.args["pCreateInfo"]["oldSwapchain"]
        elif name == "vkGetSwapchainImagesKHR":
            # A program, and each layer above it, may ask for their number alone.
            known = self._images.get(call.args["swapchain"], [])
            self._images[call.args["swapchain"]] = max(known, list(call.args["pSwapchainImages"] or ()), key=len)
        elif name in ACQUIRES:
            chain = _info(call)["swapchain"]
            order = self._order.setdefault(chain, {})
            order.setdefault(call.args["pImageIndex"], len(order))
            self._held[chain] += 1
            self._unwaited.update({_info(call)["semaphore"]: None} if _info(call)["semaphore"] else {})
            self._at_once[chain] = max(self._at_once[chain], self._held[chain])
        elif name == "vkQueuePresentKHR":
            self._held.subtract(call.args["pPresentInfo"]["pSwapchains"] or ())
            self._wait(call.args["pPresentInfo"]["pWaitSemaphores"] or ())
        elif is_submit(call.name):
            self._wait(wait.semaphore for batch in batches(call.args) for wait in batch.waits)

    def _wait(self, semaphores: Iterable[int]) -> None:
        for each in semaphores:
            self._unwaited.pop(each, None)

    def _note_others(self, needed: Collection[int]) -> None:
        """Images that are never acquired, and of which there are views all the same."""
        for chain, images in self._images.items():
            order = self._order.setdefault(chain, {})
            for index, image in enumerate(images):
                if image in needed:
                    order.setdefault(index, len(order))

    def write(self, call: Call) -> bool:
        """Writes a call about a surface or a swapchain; False for any other call."""
        name = main_name(call.name)
        if name == "vkCreateSwapchainKHR":
            self._create(call)
        elif name in ACQUIRES:
            self._acquire(call)
        return "Surface" in name or "Swapchain" in name or name in ACQUIRES

    def _create(self, call: Call) -> None:
        info, chain, script = call.args["pCreateInfo"], call.args["pSwapchain"], self.script
        if info["imageArrayLayers"] != 1:
            raise UserError("no scenario can be written: a swapchain has layers")
        if not self._is_needed(chain):
            return
        extent = (info["imageExtent"]["width"], info["imageExtent"]["height"])
        order = self._order[chain]
        given = [f"images={max(1, len(order))}", f"extent={extent}"]
        given += [f"at_once={self._at_once[chain]}"] if self._at_once[chain] > 1 else []
        if self._viewed.intersection(self._images.get(chain, ())):
            given.append(f"format={python_string(word('VkFormat', info['imageFormat'], 'VK_FORMAT_'))}")
        given += [f"usage={hex(info['imageUsage'])}"] if info["imageUsage"] & ~USAGE else []
        variable = script.name(chain, "VkSwapchainKHR")
        script.given[chain] = f"{variable}.handle"
        given += [f"old={script.names[info['oldSwapchain']]}"] if self._is_needed(info["oldSwapchain"]) else []
        method = "swapchain" if chain in self._late else "shown_swapchain"
        script.line(f"{variable} = rig.{method}({', '.join(given)})")
        for old, new in order.items():
            images = self._images.get(chain, [])
            if old < len(images):
                script.names[images[old]] = f"{variable}.images[{new}]"

    def _is_needed(self, chain: int) -> bool:
        """Whether the stream has images of a swapchain, or of one that it retires. Some may retire each other."""
        seen = {0}
        while chain not in seen and not self._order.get(chain):
            seen.add(chain)
            chain = self._replaced.get(chain, 0)
        return chain not in seen

    def _acquire(self, call: Call) -> None:
        info, script = _info(call), self.script
        given = [script.names[info["swapchain"]]]
        for key, kind in (("semaphore", "VkSemaphore"), ("fence", "VkFence")):
            given += [f"{key}={script.handle(info[key], kind)}"] if info[key] else []
        given += ["v2=True"] if "pAcquireInfo" in call.args else []
        given.append(f"wanted={self._order[info['swapchain']][call.args['pImageIndex']]}")
        script.line(f"rig.acquire({', '.join(given)})")

    def end(self) -> None:
        """Waits for the acquires for which the stream does not: their semaphores are in use until then."""
        uses = [f'SemaphoreUse({self.script.names[each]}, "ALL_COMMANDS")' for each in self._unwaited]
        if uses:
            self.script.line(f"rig.submit_batches(RigBatch([], [{', '.join(uses)}], []))")

    def present(self, call: Call, queue: int) -> None:
        """vkQueuePresentKHR; `queue` is the place of its queue among the rig's."""
        info, script = call.args["pPresentInfo"], self.script
        pairs = zip(info["pSwapchains"], info["pImageIndices"], strict=True)
        given = [f"({script.names[chain]}, {self._order[chain][index]})" for chain, index in pairs]
        waits = [script.handle(each, "VkSemaphore") for each in info["pWaitSemaphores"] or ()]
        given += [f"waits=[{', '.join(waits)}]"] if waits else []
        given += [f"queue=rig.queues[{queue}]"] if queue else []
        script.line(f"rig.present({', '.join(given)})")


def _info(call: Call) -> dict[str, int]:
    """Swapchain, semaphore and fence of an acquire, whichever its form."""
    found: dict[str, int] = call.args.get("pAcquireInfo") or call.args
    return found
