// Commands that the tables lack: each gets a small piece of code that jumps on to the next layer's function with
// whatever arguments came, and says at its first call that the command was called.

#ifndef VKHARNESS_MIRROR_UNKNOWN_HPP
#define VKHARNESS_MIRROR_UNKNOWN_HPP

#include "recorder.hpp"

namespace vkharness::mirror {

constexpr unsigned UNKNOWN_COMMANDS = 512;

struct UnknownCommand {
    Function next;
    std::uint64_t was_called;
    const char *name;
};

}  // namespace vkharness::mirror

extern "C" {
// `vkharness_thunks` are pieces of 16 bytes each.
extern vkharness::mirror::UnknownCommand vkharness_unknown[vkharness::mirror::UNKNOWN_COMMANDS] __attribute__((visibility("hidden")));
extern const char vkharness_thunks[] __attribute__((visibility("hidden")));

__attribute__((visibility("hidden"), used)) inline void vkharness_unseen(std::uint64_t which) {
    using namespace vkharness::mirror;
    UnknownCommand &command = vkharness_unknown[which];
    command.was_called = 1;
    Recorder::of_process().unseen(command.name);
}
}

#if defined(__x86_64__)
asm(R"(
    .text
    .balign 16
vkharness_thunks:
    .set which, 0
    .rept 512
    .balign 16
    movl $which, %eax
    jmp vkharness_pass
    .set which, which + 1
    .endr
    .balign 16
    .type vkharness_pass, @function
vkharness_pass:
    .cfi_startproc
    leaq (%rax,%rax,2), %r11
    leaq vkharness_unknown(%rip), %r10
    leaq (%r10,%r11,8), %r11
    cmpq $0, 8(%r11)
    je 1f
    jmp *(%r11)
1:  pushq %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    subq $192, %rsp
    andq $-16, %rsp
    movq %rdi, (%rsp)
    movq %rsi, 8(%rsp)
    movq %rdx, 16(%rsp)
    movq %rcx, 24(%rsp)
    movq %r8, 32(%rsp)
    movq %r9, 40(%rsp)
    movq %r11, 48(%rsp)
    movups %xmm0, 64(%rsp)
    movups %xmm1, 80(%rsp)
    movups %xmm2, 96(%rsp)
    movups %xmm3, 112(%rsp)
    movups %xmm4, 128(%rsp)
    movups %xmm5, 144(%rsp)
    movups %xmm6, 160(%rsp)
    movups %xmm7, 176(%rsp)
    movl %eax, %edi
    call vkharness_unseen
    movq (%rsp), %rdi
    movq 8(%rsp), %rsi
    movq 16(%rsp), %rdx
    movq 24(%rsp), %rcx
    movq 32(%rsp), %r8
    movq 40(%rsp), %r9
    movq 48(%rsp), %r11
    movups 64(%rsp), %xmm0
    movups 80(%rsp), %xmm1
    movups 96(%rsp), %xmm2
    movups 112(%rsp), %xmm3
    movups 128(%rsp), %xmm4
    movups 144(%rsp), %xmm5
    movups 160(%rsp), %xmm6
    movups 176(%rsp), %xmm7
    leave
    .cfi_def_cfa %rsp, 8
    jmp *(%r11)
    .cfi_endproc
)");
#elif defined(__aarch64__)
asm(R"(
    .text
    .balign 16
vkharness_thunks:
    .set which, 0
    .rept 512
    .balign 16
    mov w16, #which
    b vkharness_pass
    .set which, which + 1
    .endr
    .balign 16
vkharness_pass:
    .cfi_startproc
    adrp x17, vkharness_unknown
    add x17, x17, :lo12:vkharness_unknown
    add x15, x16, x16, lsl #1
    add x17, x17, x15, lsl #3
    ldr x15, [x17, #8]
    cbz x15, 1f
    ldr x17, [x17]
    br x17
1:  stp x29, x30, [sp, #-240]!
    .cfi_def_cfa_offset 240
    .cfi_offset x29, -240
    .cfi_offset x30, -232
    mov x29, sp
    stp x0, x1, [sp, #16]
    stp x2, x3, [sp, #32]
    stp x4, x5, [sp, #48]
    stp x6, x7, [sp, #64]
    stp x8, x17, [sp, #80]
    stp q0, q1, [sp, #96]
    stp q2, q3, [sp, #128]
    stp q4, q5, [sp, #160]
    stp q6, q7, [sp, #192]
    mov x0, x16
    bl vkharness_unseen
    ldp x0, x1, [sp, #16]
    ldp x2, x3, [sp, #32]
    ldp x4, x5, [sp, #48]
    ldp x6, x7, [sp, #64]
    ldp x8, x17, [sp, #80]
    ldp q0, q1, [sp, #96]
    ldp q2, q3, [sp, #128]
    ldp q4, q5, [sp, #160]
    ldp q6, q7, [sp, #192]
    ldp x29, x30, [sp], #240
    .cfi_def_cfa_offset 0
    ldr x17, [x17]
    br x17
    .cfi_endproc
)");
#else
#error "no way to pass a command on whose arguments are not known"
#endif

namespace vkharness::mirror {

class UnknownCommands {
  public:
    // What stands for the next layer's function of a command. Where there are no more, that function itself: the
    // command counts as called.
    Function standing_for(const char *name, Function next) {
        const std::lock_guard<std::mutex> locked(mutex_);
        for (unsigned at = 0; at < used_; ++at) {
            if (vkharness_unknown[at].next == next && !std::strcmp(vkharness_unknown[at].name, name)) return thunk(at);
        }
        if (used_ == UNKNOWN_COMMANDS) {
            Recorder::of_process().unseen(name);
            return next;
        }
        vkharness_unknown[used_] = {next, 0, strdup(name)};
        return thunk(used_++);
    }

    std::mutex &lock() { return mutex_; }  // for fork

  private:
    std::mutex mutex_;
    unsigned used_ = 0;

    static Function thunk(unsigned at) { return reinterpret_cast<Function>(reinterpret_cast<std::uint64_t>(vkharness_thunks) + 16 * at); }
};

}  // namespace vkharness::mirror

#endif
