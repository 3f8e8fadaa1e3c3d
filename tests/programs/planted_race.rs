// A program with a planted race: a copy reads what a fill wrote, and nothing orders the two.
use std::ptr::{null, null_mut};

type Handle = *mut u8;

#[repr(C)]
struct Info {
    kind: i32,
    next: *const u8,
    words: [u64; 8],
}

fn info(kind: i32, words: &[u64]) -> Info {
    let mut made = Info { kind, next: null(), words: [0; 8] };
    made.words[..words.len()].copy_from_slice(words);
    made
}

#[link(name = "vulkan")]
extern "C" {
    fn vkCreateInstance(info: *const Info, allocator: *const u8, made: *mut Handle) -> i32;
    fn vkEnumeratePhysicalDevices(instance: Handle, count: *mut u32, found: *mut Handle) -> i32;
    fn vkCreateDevice(physical: Handle, info: *const Info, allocator: *const u8, made: *mut Handle) -> i32;
    fn vkGetDeviceQueue(device: Handle, family: u32, index: u32, queue: *mut Handle);
    fn vkCreateBuffer(device: Handle, info: *const Info, allocator: *const u8, made: *mut Handle) -> i32;
    fn vkAllocateMemory(device: Handle, info: *const Info, allocator: *const u8, made: *mut Handle) -> i32;
    fn vkBindBufferMemory(device: Handle, buffer: Handle, memory: Handle, offset: u64) -> i32;
    fn vkCreateCommandPool(device: Handle, info: *const Info, allocator: *const u8, made: *mut Handle) -> i32;
    fn vkAllocateCommandBuffers(device: Handle, info: *const Info, made: *mut Handle) -> i32;
    fn vkBeginCommandBuffer(buffer: Handle, info: *const Info) -> i32;
    fn vkCmdFillBuffer(buffer: Handle, target: Handle, offset: u64, size: u64, value: u32);
    fn vkCmdCopyBuffer(buffer: Handle, source: Handle, target: Handle, count: u32, regions: *const [u64; 3]);
    fn vkEndCommandBuffer(buffer: Handle) -> i32;
    fn vkQueueSubmit(queue: Handle, count: u32, submits: *const Info, fence: Handle) -> i32;
    fn vkQueueWaitIdle(queue: Handle) -> i32;
}

mod renderer {
    use super::*;

    pub struct Frame<T> {
        pub buffer: Handle,
        pub value: T,
    }

    impl<T: Copy + Into<u32>> Frame<T> {
        #[inline(never)]
        pub fn fill(&self, target: Handle) {
            unsafe { vkCmdFillBuffer(self.buffer, target, 0, 4096, self.value.into()) }; // the fill
            std::hint::black_box(target);
        }

        #[inline(never)]
        pub fn copy(&self, source: Handle, target: Handle) {
            unsafe { vkCmdCopyBuffer(self.buffer, source, target, 1, &[0, 0, 4096]) }; // the copy
            std::hint::black_box(target);
        }
    }
}

fn main() {
    unsafe {
        let mut instance: Handle = null_mut();
        assert_eq!(vkCreateInstance(&info(1, &[]), null(), &mut instance), 0);
        let mut count = 1;
        let mut physical: Handle = null_mut();
        assert!(vkEnumeratePhysicalDevices(instance, &mut count, &mut physical) >= 0);
        let priority = 1f32;
        let queues = info(2, &[0, 1, &priority as *const f32 as u64]);
        let mut device: Handle = null_mut();
        let of_device = info(3, &[1 << 32, &queues as *const Info as u64]);
        assert_eq!(vkCreateDevice(physical, &of_device, null(), &mut device), 0);
        let mut queue: Handle = null_mut();
        vkGetDeviceQueue(device, 0, 0, &mut queue);
        let buffers = [0, 1].map(|_| {
            let (mut buffer, mut memory): (Handle, Handle) = (null_mut(), null_mut());
            assert_eq!(vkCreateBuffer(device, &info(12, &[0, 4096, 3]), null(), &mut buffer), 0);
            assert_eq!(vkAllocateMemory(device, &info(5, &[65536, 0]), null(), &mut memory), 0);
            assert_eq!(vkBindBufferMemory(device, buffer, memory, 0), 0);
            buffer
        });
        let (mut pool, mut commands): (Handle, Handle) = (null_mut(), null_mut());
        assert_eq!(vkCreateCommandPool(device, &info(39, &[0]), null(), &mut pool), 0);
        assert_eq!(vkAllocateCommandBuffers(device, &info(40, &[pool as u64, 1 << 32]), &mut commands), 0);
        assert_eq!(vkBeginCommandBuffer(commands, &info(42, &[0, 0])), 0);
        let frame = renderer::Frame { buffer: commands, value: 7u8 };
        frame.fill(buffers[0]);
        frame.copy(buffers[0], buffers[1]);
        assert_eq!(vkEndCommandBuffer(commands), 0);
        let submit = info(4, &[0, 0, 0, 1, &commands as *const Handle as u64, 0, 0]);
        assert_eq!(vkQueueSubmit(queue, 1, &submit, null_mut()), 0);
        assert_eq!(vkQueueWaitIdle(queue), 0);
    }
}
