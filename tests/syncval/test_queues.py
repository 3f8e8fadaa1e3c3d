"""Queues, semaphores, events and subpasses over stream events: rules.md#semaphore, rules.md#event, rules.md#subpass."""

from __future__ import annotations

from tests.support.effects import ALL_COMMANDS, IMAGE, READ_A, WRITE_A, WRITE_B, access, at, barrier, dependency
from tests.support.judged import Device
from vkharness.spec.enums import VkPipelineStage2
from vkharness.spec.masks import scope
from vkharness.trace import effects, host_effects
from vkharness.trace.attachment_operations import AttachmentOperation, RasterizationOrder

TRANSFER = VkPipelineStage2.ALL_TRANSFER
BOTTOM = VkPipelineStage2.BOTTOM_OF_PIPE
COLOR_OUTPUT = VkPipelineStage2.COLOR_ATTACHMENT_OUTPUT


def test_queues_race_without_a_semaphore() -> None:
    device = Device()
    assert device.submit(1, WRITE_A) == []
    assert device.submit(2, READ_A) == ["READ_RACING_WRITE"]
    device = Device()
    device.submit(1, WRITE_A)
    assert device.submit(2, WRITE_A) == ["WRITE_RACING_WRITE"]
    device = Device()
    device.submit(1, READ_A)
    assert device.submit(2, WRITE_A) == ["WRITE_RACING_READ"]


def test_a_binary_semaphore_is_a_memory_dependency_between_queues() -> None:
    device = Device()
    device.submit(1, WRITE_A, signals=at(7))
    assert device.submit(2, READ_A, waits=at(7, TRANSFER)) == []
    assert device.submit(2, WRITE_A) == ["WRITE_AFTER_READ"]


def test_a_wait_at_another_stage_orders_but_not_enough() -> None:
    device = Device()
    device.submit(1, READ_A, signals=at(7))
    assert device.submit(2, WRITE_A, waits=at(7, BOTTOM)) == ["WRITE_AFTER_READ"]


def test_what_follows_the_signal_still_races() -> None:
    device = Device()
    device.submit(1, READ_A, signals=at(7))
    device.submit(1, READ_A)
    assert device.submit(2, WRITE_A, waits=at(7, TRANSFER)) == ["WRITE_RACING_READ"]


def test_semaphores_carry_what_their_queue_waited_for() -> None:
    device = Device()
    device.submit(1, WRITE_A, signals=at(7))
    device.submit(2, waits=at(7), signals=at(8))
    assert device.submit(3, READ_A, waits=at(8)) == []


def test_a_semaphore_on_one_queue_is_a_full_memory_dependency() -> None:
    device = Device()
    device.submit(1, WRITE_A, signals=at(7))
    assert device.submit(1, WRITE_A, waits=at(7)) == []
    device = Device()
    device.submit(1, WRITE_A, signals=at(7))
    assert device.submit(1, WRITE_A, waits=at(7, COLOR_OUTPUT)) == ["WRITE_AFTER_WRITE"]


def test_a_timeline_wait_holds_its_queue_back_until_the_signal() -> None:
    device = Device()
    device.take(effects.SemaphoreCreated(7, 0))
    assert device.submit(1, WRITE_A, waits=at(7, TRANSFER, 1)) == []
    assert device.submit(1, WRITE_B) == []
    assert device.submit(2, WRITE_A, signals=at(7, ALL_COMMANDS, 1)) == []
    assert device.submit(2, WRITE_B) == ["WRITE_RACING_WRITE"]


def test_waiting_for_the_initial_value_orders_nothing() -> None:
    device = Device()
    device.take(effects.SemaphoreCreated(7, 3))
    device.submit(1, WRITE_A)
    assert device.submit(2, WRITE_A, waits=at(7, ALL_COMMANDS, 3)) == ["WRITE_RACING_WRITE"]
    assert device.submit(2, WRITE_A, waits=at(7, ALL_COMMANDS, 2)) == ["WRITE_AFTER_WRITE"]


def test_a_host_signal_releases_a_wait_without_a_memory_dependency() -> None:
    device = Device()
    device.take(effects.SemaphoreCreated(7, 0))
    device.submit(1, WRITE_A)
    assert device.submit(1, WRITE_A, waits=at(7, ALL_COMMANDS, 1)) == []
    assert device.take(host_effects.HostSignaled(7, 1)) == ["WRITE_AFTER_WRITE"]


def test_a_host_wait_covers_other_queues_through_their_semaphores() -> None:
    device = Device()
    device.submit(1, WRITE_A, signals=at(7))
    device.submit(1, WRITE_B)
    device.submit(2, waits=at(7), fence=9)
    device.take(effects.HostWaited(fences=(9,)))
    assert device.submit(3, WRITE_A) == []
    assert device.submit(3, WRITE_B) == ["WRITE_RACING_WRITE"]


def test_a_host_wait_for_a_timeline_value_covers_what_signaled_it() -> None:
    device = Device()
    device.take(effects.SemaphoreCreated(7, 0))
    device.submit(1, WRITE_A, signals=at(7, ALL_COMMANDS, 5))
    device.take(host_effects.HostWaitedSemaphores(((7, 4),)))
    assert device.submit(2, WRITE_A) == []


def test_a_long_timeline_keeps_few_signals() -> None:
    device = Device()
    device.take(effects.SemaphoreCreated(7, 0))
    for value in range(1, 500):
        assert device.submit(1, WRITE_A, waits=at(7, ALL_COMMANDS, value - 1), signals=at(7, ALL_COMMANDS, value)) == []
    context = device.validator._context
    context._check()
    assert context.ranges == 1
    assert context.store.sizes().awake < 70


# -- events ------------------------------------------------------------------------------------------------------------


def set_event(src: str, dst: str = "NONE", sync2: bool = True) -> effects.SetEvent:
    return effects.SetEvent(50, barrier(src, dst), sync2=sync2)


def wait_event(src: str, dst: str, *ranges: effects.RangeBarrier, sync2: bool = True) -> effects.WaitEvents:
    return effects.WaitEvents((50,), (effects.Barrier((dependency(src, dst),), ranges=ranges),), sync2=sync2)


def test_an_event_orders_what_came_before_it_was_set() -> None:
    device = Device()
    src, dst = "COPY/TRANSFER_WRITE", "COPY/TRANSFER_READ"
    assert device.submit(1, WRITE_A, set_event(src, dst), wait_event(src, dst), READ_A) == []
    device = Device()
    assert device.submit(1, set_event(src, dst), WRITE_A, wait_event(src, dst), READ_A) == ["READ_AFTER_WRITE"]
    device = Device()
    execution_only = set_event("COPY", "COPY"), wait_event("COPY", "COPY")
    assert device.submit(1, WRITE_A, *execution_only, READ_A) == ["READ_AFTER_WRITE"]


def test_an_event_works_across_submits() -> None:
    device = Device()
    src, dst = "COPY/TRANSFER_WRITE", "COPY/TRANSFER_READ"
    device.submit(1, WRITE_A, set_event(src, dst))
    assert device.submit(1, wait_event(src, dst), READ_A) == []


def test_the_first_form_gives_accesses_with_the_wait() -> None:
    device = Device()
    set1 = set_event("ALL_TRANSFER", sync2=False)
    wait1 = wait_event("ALL_TRANSFER/TRANSFER_WRITE", "COPY/TRANSFER_READ", sync2=False)
    assert device.submit(1, WRITE_A, set1, wait1, READ_A) == []


def test_a_transition_in_a_wait_conflicts_with_writes_it_does_not_make_available() -> None:
    device = Device()
    clear = access("CLEAR_TRANSFER_WRITE", IMAGE)
    move = effects.RangeBarrier(
        dependency("ALL_TRANSFER", "COPY/TRANSFER_READ"),
        IMAGE,
        ((0, 64),),
        IMAGE,
        transition=True,
        old_layout=6,
        new_layout=7,
    )
    device.submit(1, clear, set_event("ALL_TRANSFER", sync2=False))
    assert device.submit(1, wait_event("ALL_TRANSFER", "COPY", move, sync2=False)) == ["WRITE_AFTER_WRITE"]


def test_operations_on_one_event_need_an_order() -> None:
    device = Device()
    assert device.submit(1, set_event("COPY"), set_event("COPY")) == ["vkCmdSetEvent2-set-race"]
    device = Device()
    assert device.submit(1, set_event("COPY"), effects.ResetEvent(50, TRANSFER)) == ["vkCmdResetEvent-set-race"]
    device = Device()
    ordered = set_event("COPY"), barrier("ALL_COMMANDS", "COPY"), effects.ResetEvent(50, TRANSFER)
    assert device.submit(1, *ordered) == []


def test_operations_on_events_happen_in_no_stage() -> None:
    """Only ALL_COMMANDS covers them: a barrier from the stages of the set does not."""
    device = Device()
    steps = set_event("COPY"), barrier("COPY", "COPY"), effects.ResetEvent(50, TRANSFER)
    assert device.submit(1, *steps) == ["vkCmdResetEvent-set-race"]


def test_what_follows_a_wait_is_ordered_after_it() -> None:
    for stage, met in (("COPY", []), ("BLIT", ["vkCmdSetEvent2-wait"])):
        device = Device()
        assert device.submit(1, set_event("COPY", "COPY"), wait_event("COPY", "COPY"), set_event(stage)) == met
    device = Device()
    reset = set_event("COPY", "BLIT"), wait_event("COPY", "BLIT"), effects.ResetEvent(50, scope("COMPUTE_SHADER")[0])
    assert device.submit(1, *reset) == ["vkCmdResetEvent-wait-race"]


def test_of_two_unordered_sets_only_what_both_cover_is_ordered() -> None:
    src, dst = "COPY/TRANSFER_WRITE", "COPY/TRANSFER_READ"
    for between, met in ((False, []), (True, ["READ_AFTER_WRITE"])):
        device = Device()
        first, second = (set_event(src, dst), WRITE_A) if between else (WRITE_A, set_event(src, dst))
        findings = device.submit(1, first, second, set_event(src, dst), wait_event(src, dst), READ_A)
        assert [each for each in findings if each.isupper()] == met


def test_a_wait_for_two_unordered_sets_is_found() -> None:
    device = Device()
    steps = set_event("COPY", "COPY"), set_event("COPY", "COPY"), wait_event("COPY", "COPY")
    assert device.submit(1, *steps) == ["vkCmdSetEvent2-set-race", "vkCmdWaitEvents-unsynchronized-setops"]


def test_a_wait_that_may_come_too_early_orders_no_operation() -> None:
    """The set after it is held against what the wait may have missed: an unordered set, or an unordered reset."""
    stages, first = scope("COPY")[0], set_event("COPY", "COPY")
    last = wait_event("COPY", "COPY"), set_event("COPY")
    unordered = Device().submit(1, first, first, *last)
    assert unordered == ["vkCmdSetEvent2-set-race", "vkCmdWaitEvents-unsynchronized-setops", "vkCmdSetEvent2-set-race"]
    reset = first, effects.ResetEvent(50, stages), *last
    races = ["vkCmdResetEvent-set-race", "vkCmdWaitEvents-reset-race", "vkCmdSetEvent2-reset-race"]
    assert Device().submit(1, *reset) == races
    ordered = barrier("ALL_COMMANDS", "ALL_COMMANDS")
    steps = first, ordered, effects.ResetEvent(50, stages), ordered, *last
    assert Device().submit(1, *steps) == []


def test_a_set_with_no_stages_comes_after_a_barrier_to_all_commands() -> None:
    for stages, met in (("ALL_COMMANDS", []), ("COPY", ["vkCmdSetEvent2-set-race"])):
        steps = set_event("NONE"), barrier("ALL_COMMANDS", stages), set_event("NONE")
        assert Device().submit(1, *steps) == met


# -- render passes -----------------------------------------------------------------------------------------------------

WRITE_COLOR = access("COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE", IMAGE, order=RasterizationOrder.COLOR)
LOAD_COLOR = access(
    "COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_READ",
    IMAGE,
    order=RasterizationOrder.COLOR,
    operation=AttachmentOperation.LOAD,
)
READ_INPUT = access("FRAGMENT_SHADER_INPUT_ATTACHMENT_READ", IMAGE, order=RasterizationOrder.RASTER)
COLOR_TO_INPUT = dependency("COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE", "FRAGMENT_SHADER/INPUT_ATTACHMENT_READ")
IN = effects.SubpassDependency(
    effects.EXTERNAL, 0, dependency("NONE", "ALL_COMMANDS/COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE")
)
OUT = effects.SubpassDependency(0, effects.EXTERNAL, dependency("ALL_COMMANDS/COLOR_ATTACHMENT_WRITE", "NONE"))
MOVE = (effects.AutomaticTransition(IMAGE, IMAGE, ((0, 64),), 0, 2, users=(0,)),)
LAST = (effects.AutomaticTransition(IMAGE, IMAGE, ((0, 64),), 0, 2, leaves=(0,), users=(0,)),)


def test_subpasses_without_a_path_race() -> None:
    device = Device()
    begin = (effects.PassBegin(2, (IN,)), effects.SubpassBegin(0))
    steps = begin, WRITE_COLOR, effects.SubpassBegin(1), WRITE_COLOR, effects.PassEnd()
    assert device.submit(1, *steps) == ["WRITE_RACING_WRITE"]


def test_a_subpass_dependency_hands_over() -> None:
    for given, met in (((IN, effects.SubpassDependency(0, 1, COLOR_TO_INPUT)), []), ((IN,), ["READ_RACING_WRITE"])):
        device = Device()
        begin = (effects.PassBegin(2, given), effects.SubpassBegin(0))
        assert device.submit(1, begin, WRITE_COLOR, effects.SubpassBegin(1), READ_INPUT, effects.PassEnd()) == met


def test_a_chain_through_a_pass_needs_its_dependencies() -> None:
    into = effects.SubpassDependency(
        effects.EXTERNAL, 0, dependency("COPY/TRANSFER_WRITE", "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_READ")
    )
    for given, met in (((into,), []), ((IN,), ["READ_AFTER_WRITE"])):
        device = Device()
        write = access("COPY_TRANSFER_WRITE", IMAGE)
        begin = (effects.PassBegin(1, given), effects.SubpassBegin(0), LOAD_COLOR)
        assert device.submit(1, write, begin, effects.PassEnd()) == met


def test_the_initial_transition_is_ordered_by_the_external_dependency() -> None:
    write = access("COPY_TRANSFER_WRITE", IMAGE)
    good = effects.SubpassDependency(
        effects.EXTERNAL, 0, dependency("COPY/TRANSFER_WRITE", "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_READ")
    )
    for given, met in ((good, []), (IN, ["WRITE_AFTER_WRITE"])):
        device = Device()
        begin = (effects.PassBegin(1, (given,)), effects.SubpassBegin(0, transitions=MOVE), LOAD_COLOR)
        assert device.submit(1, write, begin, effects.PassEnd()) == met


def test_a_load_needs_the_dependency_to_name_its_access_after_a_transition() -> None:
    narrow = effects.SubpassDependency(
        effects.EXTERNAL, 0, dependency("NONE", "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE")
    )
    device = Device()
    begin = (effects.PassBegin(1, (narrow,)), effects.SubpassBegin(0, transitions=MOVE), LOAD_COLOR)
    assert device.submit(1, begin, effects.PassEnd()) == ["READ_AFTER_WRITE"]


def test_the_final_transition_waits_for_stores_and_what_follows_waits_for_it() -> None:
    store = access(
        "COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE",
        IMAGE,
        order=RasterizationOrder.COLOR,
        operation=AttachmentOperation.STORE,
    )
    read = access("COPY_TRANSFER_READ", IMAGE)
    unavailable = effects.SubpassDependency(0, effects.EXTERNAL, dependency("ALL_COMMANDS", "COPY/TRANSFER_READ"))
    whole = effects.SubpassDependency(
        0, effects.EXTERNAL, dependency("COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE", "COPY/TRANSFER_READ")
    )
    for given, met in ((whole, []), (unavailable, ["WRITE_AFTER_WRITE"]), (OUT, ["READ_AFTER_WRITE"])):
        device = Device()
        begin = (effects.PassBegin(1, (IN, given)), effects.SubpassBegin(0), WRITE_COLOR)
        assert device.submit(1, begin, (store, effects.PassEnd(transitions=LAST)), read) == met, given


def test_draws_are_in_raster_order_but_input_attachments_are_not() -> None:
    device = Device()
    begin = (effects.PassBegin(1, (IN, OUT)), effects.SubpassBegin(0), LOAD_COLOR)
    assert device.submit(1, begin, WRITE_COLOR, WRITE_COLOR, READ_INPUT, effects.PassEnd()) == ["READ_AFTER_WRITE"]
    device = Device()
    assert device.submit(1, begin, READ_INPUT, WRITE_COLOR, effects.PassEnd()) == ["WRITE_AFTER_READ"]


def test_accesses_of_a_pass_are_the_queues_own_afterwards() -> None:
    device = Device()
    begin = (effects.PassBegin(1, (IN, OUT)), effects.SubpassBegin(0), WRITE_COLOR)
    after = barrier("COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE", "COPY/TRANSFER_READ")
    assert device.submit(1, begin, effects.PassEnd(), after, access("COPY_TRANSFER_READ", IMAGE)) == []
    device.validator._context._check()
