"""Rows of the suite that show a known difference, for `test_known_differences`."""

OLD, BETWEEN, TODAY = "1.3.239", "1.4.309", "1.4.364"

SCENARIOS = {
    OLD: """
after-transitions-between-subpasses rendering/input_attachment_of_the_next_subpass[colour_before_input_before_sampling]
all-commands-leaves-out-transitions layout/all_commands_covers_a_transition[whole]
barriers-of-secondaries secondary/secondary_executed_by_two_primaries[whole]
blits-stay-in-their-region access/magnified_blit_reads_beside_its_region[filter_linear]
commands-passed-over descriptor/dispatch_with_a_base[without_fill_before_dispatch]
event-that-the-host-polls event/event_that_the_host_polls_and_resets[whole]
draws-in-dynamic-rendering rendering/blending_reads_what_is_not_loaded[without_uploaded_before_drawn]
pair-reported-once event/reset_after_everything[stages_some]
every-array-element descriptor/array_with_a_constant_index[whole]
fills-and-updates-are-copies barrier/shader_read_does_not_cover_uniform_buffers[without_fill_before_dispatch]
fills-and-updates-are-copies access/copy2_reads_an_updated_buffer[whole]
hazardous-wait-is-left-out event/transition_at_a_wait_in_another_command_buffer[cleared_before_moved_no_first_access]
operations-in-the-render-area rendering/clear_of_a_part_after_an_upload_beside_it[without_upload_before_rendering]
nothing-before-the-set event/barrier_goes_on_after_a_transition_at_a_wait[without_moved_before_uploaded]
one-hazard-a-segment secondary/secondary_executed_by_two_primaries[without_one_before_the_other]
query-results-are-whole-strides query/size_of_query_results[whole]
same-descriptor-write-twice barrier/two_dispatches_write_one_buffer[between_dispatches_execution_only]
semaphore-scopes semaphore/copy_waits_for_a_fill[the_wait_at_the_top]
shader-read-covers-uniforms barrier/shader_read_does_not_cover_uniform_buffers[fill_before_dispatch_shader_read]
sync2-barriers-order-only-their-resource barrier/buffer_barrier2_orders_execution_on_other_buffers[whole]
timeline-semaphores timeline/next_submit_after_a_value[the_wait_all_of_two]
transition-after-barrier layout/transition_from_none_after_a_read[whole]
transition-after-barrier layout/transition_from_none_after_a_write[to_source_from_the_top]
transitions-between-subpasses rendering/transition_in_a_subpass_without_a_dependency[without_first_before_second]
views-are-layers rendering/layers_that_are_no_views_are_left_alone[whole]
whole-vertex-buffers draw/vertices_that_no_index_means[whole]
whole-vertex-buffers draw/bindings_of_instance_rate[element_of_the_next_instance]
""",
    BETWEEN: """
clears-against-what-the-load-met rendering/external_dependencies_order_a_pass_among_copies[without_upload_before_load]
operations-on-all-layers-of-a-view rendering/layers_beyond_those_rendered_are_left_alone[whole]
some-commands-passed-over descriptor/dispatch_with_a_base[without_fill_before_dispatch]
depth-of-draws-in-dynamic-rendering rendering/draw_that_writes_depth[without_downloaded_before_drawn]
vertices-unseen draw/vertices_behind_indices[without_updated_before_drawn]
vertices-unseen draw/bindings_of_instance_rate[without_updated_before_drawn]
vertices-unseen draw/indexed_indirect_draw[without_vertices_before]
reads-forgotten-at-submit engines/writes_of_a_queue[used_before_written_of_vertices]
one-hazard-a-segment event/command_buffer_with_an_event_submitted_twice[without_second_round]
""",
    TODAY: """
all-commands-needs-the-write-of-a-transition layout/all_commands_covers_a_transition[after_without_naming_the_write]
arrays-skipped descriptor/array_copied_from_one_element_to_another[filled_before_the_source_alone]
barrier-after-a-set event/barrier_after_a_set_does_not_reach_its_scope[order_barrier_after_set]
blits-stay-in-their-region access/magnified_blit_reads_beside_its_region[filter_linear]
culled-draws rendering/culled_draw_leaves_attachments_alone[whole]
set-forgotten-at-a-reset-by-the-host event/event_that_the_host_polls_and_resets[without_the_host_sees_the_first_set]
draws-write-in-the-late-tests rendering/early_write_is_read_as_input[whole]
event-before-a-wait-for-a-semaphore event/event_over_a_wait_for_a_semaphore[whole]
event-reset-by-the-host event/event_reset_by_the_host[whole]
other-aspects-are-rewritten rendering/store_of_depth_rewrites_stencil[stored_before_downloaded_for_depth_alone]
query-results-are-one-range query/gaps_between_query_results[whole]
ordered-after-a-read barrier/reads_after_a_guarded_read[E_execution_only]
queries query/query_is_used_twice[without_reset_between]
late-sets-of-the-host event/host_reads_before_it_sets_an_event[whole]
no-rules-of-usage event/wait_of_the_first_form_names_the_stages_of_the_set[stages_more]
transition-beside-an-aliased-attachment rendering/initial_transition_after_a_use_of_an_aliased_attachment[first_before_second_after_vertices]
preserved-and-used rendering/attachment_that_is_preserved_and_used[preserved_too]
resets-after-waits event/reset_after_wait[wait_before_reset_not_chained]
common-scope-of-unordered-sets event/what_two_unordered_sets_both_cover[whole]
vertices-unseen draw/bindings_of_instance_rate[without_updated_before_drawn]
wait-without-a-match event/wait_has_the_form_and_the_dependency_of_the_set[wait_wider_second_scope]
waits-for-unordered-sets event/wait_after_two_sets[without_one_set_before_the_other]
whole-ranges-of-descriptors descriptor/two_halves_of_one_grid[whole]
view-offset rendering/view_local_dependency_of_one_view[first_before_second_of_the_next_view]
by-region-is-everywhere rendering/storage_buffer_beside_a_by_region_dependency[flags_by_region]
loads-and-stores-race rendering/readers_of_an_attachment_that_is_stored[whole]
operations-on-all-layers-of-a-view rendering/layers_beyond_those_rendered_are_left_alone[whole]
order-outlives-the-subpass rendering/two_instances_on_one_attachment[without_first_instance_before_second]
raster-ordered-accesses rendering/rasterization_order_attachment_access[whole]
read-only-transitions rendering/two_read_only_layouts[whole]
unmoved-without-a-dependency granite_backend/deferred_rendering[without_surfaces_before_light]
races-where-nothing-moved granite_backend/deferred_rendering[without_surfaces_before_light]
moved-once-for-several-subpasses rendering/readers_of_an_attachment_that_one_of_them_moves[whole]
in-order-beyond-subpasses rendering/readers_of_an_attachment_that_one_of_them_moves[without_colour_before_second_reader]
resolves-are-not-stored rendering/depth_resolve_of_a_subpass[whole]
resolves-in-the-render-area rendering/upload_beside_a_resolved_part[without_resolve_before_upload]
store-none-after-a-write rendering/clear_of_one_aspect[aspect_stencil]
in-order-by-more rendering/operations_of_an_attachment_of_two_subpasses[whole]
in-order-by-more rendering/initial_transition_after_a_dependency_into_a_later_subpass[whole]
in-order-by-more rendering/final_transition_after_a_dependency_into_another_subpass[whole]
""",  # noqa: E501 (one row a line)
}
"""By layer, lines of: entry, folder/scenario[variant]."""
SWIFTSHADER = (
    "draws-in-dynamic-rendering",
    "other-aspects-are-rewritten",
    "several-differences-at-once",
    "store-none-after-a-write",
)
"""Entries that need an extension which lavapipe lacks, or a driver without VK_KHR_maintenance7, which Mesa 25 has."""
