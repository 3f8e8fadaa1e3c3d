"""Commands of the small engine."""

import vulkan as vk
from short_names import *
from small_pipelines import SmallPipelines


class SmallCommands(SmallPipelines):
    """Records barriers, copies, draws and render passes."""

    # Commands

    def commands(self, family=0):
        made = vk.vkAllocateCommandBuffers(
            self.device, vk.VkCommandBufferAllocateInfo(commandPool=self.pools[family], level=0, commandBufferCount=1)
        )[0]
        return self.begin(made)

    def begin(self, made):
        vk.vkBeginCommandBuffer(made, vk.VkCommandBufferBeginInfo())
        return made

    def bind(self, commands, pipeline, resources=(), push=None):
        vk.vkCmdBindPipeline(commands, pipeline.point, pipeline.handle)
        if resources != ():
            held = resources if not isinstance(resources, (list, tuple)) else self.set(pipeline, resources)
            vk.vkCmdBindDescriptorSets(commands, pipeline.point, pipeline.layout, 0, 1, [held], 0, None)
        if push is not None:
            data = vk.ffi.new("char[]", push)
            vk.vkCmdPushConstants(commands, pipeline.layout, pipeline.stages, 0, len(push), data)

    def dispatch(self, commands, pipeline, resources, groups=4, push=None):
        self.bind(commands, pipeline, resources, push)
        vk.vkCmdDispatch(commands, groups, 1, 1)

    def barrier(self, commands, before, after):
        """A global barrier between two scopes, such as "COPY/TRANSFER_WRITE"."""
        self._barriers(commands, before, after, [("memory", {})])

    def buffer_barrier(self, commands, buffer, before, after, offset=0, size=None, families=(IGNORED, IGNORED)):
        held = {
            "buffer": buffer.handle,
            "offset": offset,
            "size": size or buffer.size,
            "srcQueueFamilyIndex": families[0],
            "dstQueueFamilyIndex": families[1],
        }
        self._barriers(commands, before, after, [("buffer", held)])

    def transition(self, commands, image, old, new, before, after, families=(IGNORED, IGNORED), **parts):
        held = {
            "image": image.handle,
            "oldLayout": layout(old),
            "newLayout": layout(new),
            "subresourceRange": image.range(**parts),
            "srcQueueFamilyIndex": families[0],
            "dstQueueFamilyIndex": families[1],
        }
        self._barriers(commands, before, after, [("image", held)])

    def _barriers(self, commands, before, after, each):
        kinds = {"memory": [], "buffer": [], "image": []}
        if self.sync2:
            types = {
                "memory": vk.VkMemoryBarrier2,
                "buffer": vk.VkBufferMemoryBarrier2,
                "image": vk.VkImageMemoryBarrier2,
            }
            for kind, held in each:
                kinds[kind].append(
                    types[kind](
                        srcStageMask=stages(before),
                        srcAccessMask=accesses(before),
                        dstStageMask=stages(after),
                        dstAccessMask=accesses(after),
                        **held,
                    )
                )
            info = vk.VkDependencyInfo(
                pMemoryBarriers=kinds["memory"],
                pBufferMemoryBarriers=kinds["buffer"],
                pImageMemoryBarriers=kinds["image"],
            )
            vk.vkCmdPipelineBarrier2(commands, info)
        else:
            types = {"memory": vk.VkMemoryBarrier, "buffer": vk.VkBufferMemoryBarrier, "image": vk.VkImageMemoryBarrier}
            for kind, held in each:
                kinds[kind].append(types[kind](srcAccessMask=accesses(before), dstAccessMask=accesses(after), **held))
            lists = (kinds["memory"], kinds["buffer"], kinds["image"])
            counted = [part for held in lists for part in (len(held), held or None)]
            vk.vkCmdPipelineBarrier(commands, stages(before) or 1, stages(after) or 0x2000, 0, *counted)

    def copy(self, commands, source, target, size=None, at=0, to=0):
        vk.vkCmdCopyBuffer(
            commands, source.handle, target.handle, 1, [vk.VkBufferCopy(at, to, size or min(source.size, target.size))]
        )

    def upload(self, commands, source, image, mip=0, layer=0, at=0):
        extent = vk.VkExtent3D(max(1, image.width >> mip), max(1, image.height >> mip), 1)
        region = vk.VkBufferImageCopy(at, 0, 0, image.layers(mip, layer), vk.VkOffset3D(0, 0, 0), extent)
        vk.vkCmdCopyBufferToImage(commands, source.handle, image.handle, layout("TRANSFER_DST_OPTIMAL"), 1, [region])

    def read_back(self, commands, image, target, mip=0, layer=0, at=0, held="TRANSFER_SRC_OPTIMAL"):
        extent = vk.VkExtent3D(max(1, image.width >> mip), max(1, image.height >> mip), 1)
        region = vk.VkBufferImageCopy(at, 0, 0, image.layers(mip, layer), vk.VkOffset3D(0, 0, 0), extent)
        vk.vkCmdCopyImageToBuffer(commands, image.handle, layout(held), target.handle, 1, [region])

    def submit_drawn(self, commands, image, target):
        """Reads back what was drawn to an image, submits and waits."""
        drawn, read = "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE", "TRANSFER/TRANSFER_READ"
        self.transition(commands, image, "COLOR_ATTACHMENT_OPTIMAL", "TRANSFER_SRC_OPTIMAL", drawn, read)
        self.read_back(commands, image, target)
        self.submit(commands)
        self.idle()

    def blit(self, commands, image, mip, held=("TRANSFER_SRC_OPTIMAL", "TRANSFER_DST_OPTIMAL"), target=None, to=None):
        target, to = target or image, mip + 1 if to is None else to
        ends = [
            [vk.VkOffset3D(0, 0, 0), vk.VkOffset3D(max(1, i.width >> m), max(1, i.height >> m), 1)]
            for i, m in ((image, mip), (target, to))
        ]
        region = vk.VkImageBlit(image.layers(mip), ends[0], target.layers(to), ends[1])
        vk.vkCmdBlitImage(
            commands, image.handle, layout(held[0]), target.handle, layout(held[1]), 1, [region], vk.VK_FILTER_NEAREST
        )

    def rendering(self, commands, colors, depth=None, size=(16, 16)):
        """Begins dynamic rendering; an attachment is (view, load, store[, layout])."""
        held = []
        for at, each in enumerate([*colors, *([depth] if depth else [])]):
            view, load, store, *where = each
            value = (
                vk.VkClearValue(color=vk.VkClearColorValue(float32=[0.5, 0.25, 1.0, 1.0]))
                if at < len(colors)
                else vk.VkClearValue(depthStencil=vk.VkClearDepthStencilValue(1.0, 0))
            )
            default = "COLOR_ATTACHMENT_OPTIMAL" if at < len(colors) else "DEPTH_STENCIL_ATTACHMENT_OPTIMAL"
            held.append(
                vk.VkRenderingAttachmentInfo(
                    imageView=view,
                    imageLayout=layout(where[0] if where else default),
                    loadOp=one_of("VK_ATTACHMENT_LOAD_OP_", load),
                    storeOp=one_of("VK_ATTACHMENT_STORE_OP_", store),
                    clearValue=value,
                )
            )
        self.kept.append(held)
        area = vk.VkRect2D(vk.VkOffset2D(0, 0), vk.VkExtent2D(*size))
        vk.vkCmdBeginRendering(
            commands,
            vk.VkRenderingInfo(
                renderArea=area,
                layerCount=1,
                pColorAttachments=held[: len(colors)],
                pDepthAttachment=held[len(colors)] if depth else None,
            ),
        )

    def render_pass(self, attachments, subpasses, dependencies):
        """attachments: (format, load, store, initial, final); subpasses: (colors, depth, inputs); dependencies: (from, to, before, after)."""
        described = [
            vk.VkAttachmentDescription(
                format=f,
                samples=1,
                loadOp=one_of("VK_ATTACHMENT_LOAD_OP_", lo),
                storeOp=one_of("VK_ATTACHMENT_STORE_OP_", st),
                stencilLoadOp=2,
                stencilStoreOp=1,
                initialLayout=layout(i),
                finalLayout=layout(n),
            )
            for f, lo, st, i, n in attachments
        ]
        made = []
        for colors, depth, inputs in subpasses:
            refs = [vk.VkAttachmentReference(c, layout("COLOR_ATTACHMENT_OPTIMAL")) for c in colors]
            reads = [vk.VkAttachmentReference(c, layout("SHADER_READ_ONLY_OPTIMAL")) for c in inputs]
            deep = (
                vk.VkAttachmentReference(depth, layout("DEPTH_STENCIL_ATTACHMENT_OPTIMAL"))
                if depth is not None
                else None
            )
            self.kept += [refs, reads, deep]
            made.append(
                vk.VkSubpassDescription(
                    pipelineBindPoint=0,
                    inputAttachmentCount=len(reads),
                    pInputAttachments=reads,
                    colorAttachmentCount=len(refs),
                    pColorAttachments=refs,
                    pDepthStencilAttachment=deep,
                )
            )
        held = [
            vk.VkSubpassDependency(a, b, stages(x), stages(y), accesses(x), accesses(y), 0)
            for a, b, x, y in dependencies
        ]
        info = vk.VkRenderPassCreateInfo(pAttachments=described, pSubpasses=made, pDependencies=held)
        return vk.vkCreateRenderPass(self.device, info, None)

    def framebuffer(self, render_pass, views, size=(16, 16)):
        return vk.vkCreateFramebuffer(
            self.device,
            vk.VkFramebufferCreateInfo(
                renderPass=render_pass, pAttachments=views, width=size[0], height=size[1], layers=1
            ),
            None,
        )

    def begin_pass(self, commands, render_pass, framebuffer, clears, size=(16, 16)):
        values = [
            vk.VkClearValue(depthStencil=vk.VkClearDepthStencilValue(1.0, 0))
            if c == "depth"
            else vk.VkClearValue(color=vk.VkClearColorValue(float32=[0.25, 0.5, 0.75, 1.0]))
            for c in clears
        ]
        area = vk.VkRect2D(vk.VkOffset2D(0, 0), vk.VkExtent2D(*size))
        vk.vkCmdBeginRenderPass(
            commands,
            vk.VkRenderPassBeginInfo(
                renderPass=render_pass, framebuffer=framebuffer, renderArea=area, pClearValues=values
            ),
            0,
        )
