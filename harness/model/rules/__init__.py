"""The rules, one function each, one file for each family. `RULES` says which function is the rule for what."""

from harness.model.program import RuleTable
from harness.model.rules import action, barrier, event, host, presentation, query, recording, semaphore, submit, subpass
from harness.trace import effects, host_effects, query_effects, sparse_effects

RULES = RuleTable(
    effects={
        effects.Access: action.access,
        sparse_effects.BindingUse: action.binding_use,
        effects.Execute: action.execute,
        effects.InheritedTargets: action.inherited,
        effects.Unmodelled: action.unmodelled,
        effects.InvalidUsage: action.invalid_usage,
        effects.Barrier: barrier.pipeline_barrier,
        effects.ResetEvent: event.reset_event,
        effects.SetEvent: event.set_event,
        effects.WaitEvents: event.wait_events,
        query_effects.UseQueries: query.use_queries,
        effects.RenderingBegin: subpass.rendering_begin,
        effects.PassBegin: subpass.pass_begin,
        effects.PassEnd: subpass.pass_end,
        effects.SubpassBegin: subpass.subpass_begin,
        effects.AttachmentUsers: subpass.attachment_users,
    },
    stream_events={
        host_effects.HostSetEvent: event.host_set_event,
        query_effects.HostQueries: query.host_queries,
        effects.Destroyed: host.destroyed,
        effects.FenceReset: host.fence_reset,
        host_effects.HostAccess: host.host_access,
        host_effects.HostDeclaredRead: host.host_read,
        host_effects.HostFlushed: host.host_flushed,
        host_effects.HostInvalidated: host.host_invalidated,
        effects.HostWaited: host.host_waited,
        host_effects.HostWrote: host.host_wrote,
        effects.UnmodelledCall: host.ignored,
        effects.Acquired: presentation.acquired,
        effects.Presented: presentation.presented,
        effects.CommandBufferReset: recording.begun,
        effects.Recorded: recording.recorded,
        host_effects.HostWaitedSemaphores: semaphore.host_waited_semaphores,
        effects.PayloadShared: semaphore.payload_shared,
        effects.SemaphoreCreated: semaphore.semaphore_created,
        effects.SignalMoved: semaphore.signal_moved,
        host_effects.HostSignaled: submit.host_signaled,
        effects.QueueObtained: submit.queue_obtained,
        effects.SharedResource: submit.concurrent,
        effects.Submitted: submit.submitted,
    },
    next_work=submit.next_work,
)
