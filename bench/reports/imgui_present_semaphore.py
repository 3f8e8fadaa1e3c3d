"""Dear ImGui 9419, vulkan-guide 149, Diligent 682: the semaphore that a present waits for is chosen by the frame in flight."""

from short_names import *
from small_engine import Engine

e = Engine(sync2=False, surface=True)
chain, images = e.swapchain(images=3)
FRAMES = 2
acquired, fences = [e.semaphore() for _ in range(FRAMES)], [e.fence(True) for _ in range(FRAMES)]
rendered = [e.semaphore() for _ in (images if MENDED else images[:1])]


def render(number, index, done):
    slot, image = number % FRAMES, images[index]
    c = e.commands()
    OUTPUT = "COLOR_ATTACHMENT_OUTPUT"
    e.transition(c, image, "UNDEFINED", "COLOR_ATTACHMENT_OPTIMAL", OUTPUT, f"{OUTPUT}/COLOR_ATTACHMENT_WRITE")
    e.rendering(c, [(image.view(), "CLEAR", "STORE")])
    vk.vkCmdEndRendering(c)
    before = f"{OUTPUT}/COLOR_ATTACHMENT_WRITE"
    e.transition(c, image, "COLOR_ATTACHMENT_OPTIMAL", "PRESENT_SRC_KHR", before, "BOTTOM_OF_PIPE")
    e.submit(c, [(acquired[slot], OUTPUT)], [(done,)], fences[slot])


coming = e.acquire(chain, acquired[0])
for number in range(4):
    index, slot = coming, number % FRAMES
    e.wait(fences[slot])
    done = rendered[index if MENDED else 0]
    render(number, index, done)
    vk.vkWaitForFences(e.device, 1, [fences[(number + 1) % FRAMES]], True, FOREVER)
    coming = e.acquire(chain, acquired[(number + 1) % FRAMES])
    e.present(chain, index, [done])
e.idle()
