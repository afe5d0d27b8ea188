//! End-to-end tests: what a user sees of a real host on a real control plane. `make test-e2e ARGS=case_01`.
//!
//! To add one: an `async fn case_NN_…(case: Case) -> Outcome` in the file it belongs to, and its name below.

mod harness;
mod ownership;
mod conflicts;
mod deletion;
mod fields;
mod faults;
mod storage;
mod credentials;
mod guests;
mod steady;
mod readiness;
mod scope;
mod server;
mod clock;
mod leader;
mod late;
mod crd;
mod specs;
mod fuzz;
mod plugins;
mod objects;
mod schema;
mod images;
mod swap;
mod fair;
mod strategies;
mod drift;
mod rivals;
mod pruning;
mod secrets;
mod refusals;
mod errors;
mod failed;
mod hostile;
mod languages;
mod finalize;
mod related;
mod debug;
mod shadow;
mod databases;
mod namespaces;
mod cascades;
mod wire;
mod crowd;
mod chaos;
mod levers;
mod upgrades;

use std::process::ExitCode;

use keelson_tests::prelude::seconds;
use keelson_tests::{private, run, shared};

fn main() -> ExitCode {
    run(vec![
        shared!(harness::a_namespace_has_its_limits_and_its_policy),
        shared!(harness::a_pod_runs_unless_it_is_left_to_the_test),
        shared!(harness::a_wait_that_ends_says_what_it_saw),
        shared!(harness::calls_are_counted_by_user),
        shared!(harness::a_recording_holds_every_state),
        shared!(harness::the_proxy_passes_and_fails_as_told),
        shared!(harness::the_proxy_breaks_open_watches),
        private!(harness::a_private_control_plane_takes_flags, harness::narrow_ports()),
        shared!(ownership::case_01_deleted_children_come_back),
        shared!(ownership::case_03_a_service_selects_its_own_pod_only),
        shared!(conflicts::case_04_what_is_not_ours_is_left_alone),
        shared!(conflicts::case_04_a_secret_that_is_not_ours_is_left_alone),
        private!(conflicts::case_04_a_child_of_an_earlier_database_is_left_alone),
        shared!(ownership::case_08_labels_of_the_database_are_not_copied),
        shared!(ownership::case_09_owner_references_need_a_right_and_the_shipped_role_has_it),
        shared!(ownership::case_82_a_child_without_our_label_comes_back),
        shared!(deletion::case_06_a_new_database_waits_for_the_old_child),
        shared!(deletion::case_07_nothing_is_made_for_what_is_going),
        shared!(deletion::case_10_a_namespace_goes_without_the_host),
        shared!(deletion::case_10_a_namespace_goes_under_a_host),
        shared!(deletion::case_19_a_database_that_goes_during_a_walk_leaves_nothing),
        shared!(deletion::case_19_a_child_that_goes_during_a_repair_is_made_anew),
        shared!(fields::case_14_a_limit_range_and_a_mutating_policy_make_no_noise),
        shared!(fields::case_17_an_edited_field_is_put_back).within(seconds(240)),
        shared!(fields::case_17_an_edited_status_is_put_back),
        shared!(fields::case_18_what_others_add_is_theirs),
        shared!(fields::case_84_a_rewritten_image_is_applied_once),
        shared!(faults::case_02_a_walk_that_is_cut_short_is_completed),
        shared!(guests::case_05_children_beyond_the_namespace_are_refused),
        shared!(storage::data_is_kept_and_found_again).within(seconds(240)),
        shared!(storage::data_of_another_line_or_plugin_is_refused).within(seconds(240)),
        shared!(storage::data_of_a_living_database_is_nobody_elses).within(seconds(240)),
        shared!(storage::what_happens_to_data_can_be_changed).within(seconds(240)),
        shared!(storage::claims_grow_and_never_shrink).within(seconds(240)),
        shared!(storage::data_that_is_left_out_stays).within(seconds(240)),
        shared!(storage::a_kind_that_is_declared_no_more_is_pruned).within(seconds(240)),
        shared!(storage::what_nobody_owns_is_adopted_by_the_users_word).within(seconds(240)),
        shared!(storage::a_host_that_is_killed_while_it_takes_data_over_completes_it).within(seconds(240)),
        shared!(credentials::case_42_a_password_is_made_once_and_an_edit_is_told).within(seconds(240)),
        shared!(credentials::case_85_the_data_of_a_password_stays).within(seconds(240)),
        shared!(credentials::a_lost_password_is_told_while_there_is_data).within(seconds(240)),
        shared!(credentials::a_lost_password_without_data_is_made_anew).within(seconds(240)),
        shared!(credentials::a_watched_secret_is_noticed_at_once).within(seconds(240)),
        shared!(credentials::a_users_own_secret_is_used_and_never_written_to).within(seconds(240)),
        shared!(steady::case_22_steady_databases_cost_nothing).within(seconds(600)),
        shared!(steady::a_database_costs_its_children_two_statuses_and_an_event),
        shared!(steady::a_host_that_is_killed_and_started_again_writes_nothing),
        shared!(readiness::case_24_an_unschedulable_pod_is_told),
        shared!(readiness::case_24_a_database_is_ready_when_its_pod_is),
        shared!(scope::case_33_a_role_is_enough_for_one_namespace),
        shared!(scope::case_64_a_missing_verb_is_the_matter_of_its_kind).within(seconds(300)),
        shared!(scope::case_33_all_namespaces_need_more_and_it_says_what),
        shared!(scope::case_33_of_two_namespaces_the_one_that_may_be_read_is_served),
        shared!(scope::the_rights_that_are_printed_are_those_that_are_shipped),
        shared!(server::a_missing_server_is_named),
        shared!(server::a_wrong_ca_is_named),
        shared!(server::a_token_that_is_not_valid_any_more_is_named),
        shared!(server::what_it_cannot_start_with_is_named_at_its_end),
        shared!(server::a_signal_ends_it_at_once),
        shared!(leader::case_50_a_standby_says_so_and_writes_nothing),
        shared!(leader::case_50_a_leader_that_ends_is_followed_at_once_without_a_write),
        shared!(leader::a_leader_that_is_killed_is_followed),
        shared!(leader::case_39_a_frozen_leader_sends_nothing_after_its_deadline).within(seconds(180)),
        shared!(leader::case_39_a_leader_whose_lease_is_over_writes_no_more_though_it_lives).within(seconds(180)),
        shared!(late::case_39_a_write_that_comes_late_does_no_harm).within(seconds(240)),
        shared!(leader::case_39_clocks_that_are_off_change_nothing).within(seconds(180)),
        shared!(clock::case_27_failures_of_an_hour_are_told_seldom_and_tried_less_and_less).within(seconds(240)),
        shared!(clock::a_host_whose_clock_is_off_works_as_any_other),
        shared!(leader::a_leader_that_is_cut_off_ends_in_time_and_is_followed),
        shared!(leader::of_two_hosts_that_start_at_once_exactly_one_leads),
        shared!(leader::a_host_that_may_not_touch_the_lease_says_so),
        shared!(leader::a_lease_that_others_touch_is_kept_or_lost_but_never_shared),
        private!(crd::case_21_the_tutorials_crd_has_no_status, crd::without()).within(seconds(180)),
        private!(crd::case_21_a_crd_that_gets_a_status_is_noticed, crd::without()).within(seconds(180)),
        private!(crd::case_37_a_missing_crd_is_waited_for, crd::without()).within(seconds(400)),
        shared!(crd::case_37_a_server_that_is_down_is_not_called_a_missing_crd),
        shared!(specs::an_invalid_type_is_refused_at_admission),
        shared!(specs::case_29_what_is_too_large_is_told),
        private!(specs::case_30_names_that_fit_no_child, crd::without()).within(seconds(180)),
        private!(specs::case_34_a_bad_spec_stops_only_itself, crd::without()).within(seconds(180)),
        private!(fuzz::case_45_a_fuzzed_spec_ends_in_a_condition, crd::without()).within(seconds(180)),
        shared!(plugins::case_45_a_trap_stays_with_its_object),
        shared!(plugins::case_71_a_missing_kind_stalls_only_its_plugin),
        shared!(plugins::case_71_a_plugin_that_hangs_stalls_only_its_objects).within(seconds(240)),
        shared!(plugins::case_72_a_child_with_an_invalid_name_wedges_nothing),
        private!(plugins::case_75_four_of_five_plugins_serve, crd::without()),
        private!(objects::a_plugin_object_installs_and_its_status_tells).within(seconds(180)),
        private!(objects::a_file_goes_before_an_object_of_the_same_name),
        private!(objects::who_serves_a_kind_keeps_it).within(seconds(180)),
        private!(objects::without_the_kind_or_the_right_the_folder_serves_on, objects::bare()).within(seconds(180)),
        private!(objects::a_standby_follows_and_says_nothing).within(seconds(180)),
        private!(schema::a_mismatch_is_told_and_heals).within(seconds(240)),
        shared!(schema::a_role_is_enough_to_tell_it),
        shared!(schema::what_cannot_be_read_is_said_once),
        shared!(schema::the_shipped_plugins_fit_the_shipped_definition),
        private!(schema::a_merged_definition_is_accepted_and_served, crd::without()).within(seconds(240)),
        private!(images::what_everybody_pushes_loads).within(seconds(240)),
        private!(images::a_tag_that_moves_changes_nothing_that_serves).within(seconds(240)),
        private!(images::case_62_a_registry_with_a_password_and_a_ca).within(seconds(300)),
        private!(images::what_cosign_signed_is_trusted).within(seconds(300)),
        shared!(images::case_78_a_volume_and_keys_need_no_egress).within(seconds(180)),
        shared!(swap::a_new_version_serves_without_a_restart),
        shared!(swap::a_version_that_fails_leaves_the_last_one_serving).within(seconds(180)),
        shared!(swap::a_new_version_sees_what_the_old_one_did_not),
        shared!(swap::a_swap_under_load_fails_no_render).within(seconds(240)),
        shared!(swap::a_plugin_may_come_and_go),
        shared!(fair::a_plugin_that_fails_is_asked_more_rarely_and_heals_alone).within(seconds(300)),
        private!(fair::another_version_of_a_failing_plugin_begins_anew).within(seconds(240)),
        shared!(finalize::case_12_a_deleted_database_is_finalized_at_once),
        shared!(finalize::case_46_a_finalization_that_is_cut_short_is_completed),
        shared!(related::what_a_plugin_looks_at_is_shown_and_followed),
        shared!(related::what_cannot_be_read_stops_the_render).within(seconds(120)),
        shared!(related::nothing_is_looked_at_beyond_the_grant),
        shared!(related::children_may_name_what_was_found),
        shared!(shadow::a_diff_tells_what_a_version_then_does).within(seconds(180)),
        shared!(debug::a_bundle_gives_the_same_on_a_laptop),
        shared!(debug::what_failed_is_kept_with_the_rule_that_refused_it),
        shared!(finalize::a_finalization_fits_every_kind_of_delete),
        shared!(finalize::a_finalization_that_fails_holds_until_it_is_forced).within(seconds(180)),
        shared!(finalize::a_finalization_that_takes_too_long_is_told_or_given_up),
        shared!(clock::a_finalization_takes_its_time_by_a_clock_that_is_off).within(seconds(180)),
        shared!(finalize::a_finalization_keeps_the_data_that_it_renders),
        shared!(finalize::an_orphaned_password_is_not_owned_again),
        shared!(finalize::a_document_that_cannot_be_read_takes_no_finalizer_off),
        shared!(finalize::a_finalizer_goes_with_its_plugin),
        shared!(finalize::without_the_right_to_hold_an_object_nothing_is_made_for_it),
        shared!(finalize::case_70_a_plugin_exports_only_the_hooks_that_it_needs),
        shared!(levers::case_11_a_paused_database_can_be_deleted),
        shared!(levers::a_pause_holds_back_writes_and_says_which).within(seconds(180)),
        shared!(levers::a_database_made_paused_gets_nothing_yet),
        shared!(levers::case_69_the_resync_fires_though_nothing_happens).within(seconds(180)),
        shared!(levers::a_render_can_be_asked_for),
        shared!(levers::a_plugin_is_asked_again_when_it_wants),
        shared!(levers::labels_and_annotations_are_passed_by_an_allow_list),
        shared!(levers::case_74_a_burst_of_edits_is_rendered_at_most_once_each),
        shared!(levers::case_68_a_plugin_that_fails_for_a_while_recovers_alone).within(seconds(300)),
        private!(levers::case_66_a_status_of_ours_starts_no_reconcile, crd::without()).within(seconds(240)),
        shared!(levers::objects_of_plugins_that_all_fail_are_told),
        shared!(namespaces::case_73_a_namespace_that_gets_the_label_is_served).within(seconds(180)),
        shared!(namespaces::a_selector_needs_a_right_and_stands_alone),
        shared!(cascades::an_orphaning_delete_leaves_the_children_to_nobody),
        shared!(cascades::an_orphaning_delete_that_the_host_hears_of_late_is_kept_to),
        shared!(cascades::every_cascade_ends_without_a_host),
        private!(cascades::a_namespace_goes_with_an_object_in_finalization),
        private!(strategies::case_13_another_type_replaces_the_pod_once, crd::without()).within(seconds(180)),
        shared!(strategies::case_13_a_new_plugin_version_with_other_env).within(seconds(180)),
        shared!(strategies::case_13_what_stays_in_place_is_said),
        shared!(strategies::on_delete_waits_for_a_person),
        shared!(strategies::replacements_back_off),
        shared!(strategies::a_pod_stays_where_its_replacement_would_be_refused),
        shared!(strategies::a_stateful_set_is_never_replaced),
        shared!(strategies::an_immutable_config_map_is_made_anew),
        shared!(strategies::case_83_labels_change_under_a_limit_range),
        shared!(strategies::labels_change_where_a_policy_rewrote_what_is_fixed),
        shared!(strategies::resources_are_changed_where_the_pod_stands).within(seconds(180)),
        shared!(strategies::resources_are_changed_by_strategy_where_the_node_cannot),
        shared!(strategies::a_resize_that_the_node_puts_off_or_refuses_is_told).within(seconds(180)),
        shared!(drift::case_65_drift_is_repaired_without_a_generation),
        shared!(drift::two_writers_that_fight_are_told).within(seconds(240)),
        shared!(drift::a_fight_about_our_label_is_told).within(seconds(180)),
        shared!(drift::a_fight_about_a_list_is_told).within(seconds(180)),
        shared!(rivals::a_fight_about_the_status_is_told).within(seconds(240)),
        shared!(rivals::a_fight_about_the_finalizer_is_told).within(seconds(180)),
        shared!(rivals::a_controller_that_deletes_children_is_told).within(seconds(240)),
        shared!(pruning::what_may_not_be_deleted_is_told_and_the_rest_goes),
        shared!(pruning::a_child_that_changes_under_its_delete_is_pruned_all_the_same),
        shared!(pruning::a_claim_is_never_replaced),
        shared!(secrets::naming_another_secret_is_told),
        private!(secrets::without_a_status_an_edit_is_told_by_the_host_that_saw_it, crd::without()),
        shared!(secrets::a_secret_that_follows_from_another_is_made_in_the_same_walk),
        shared!(secrets::a_secret_that_is_missing_is_not_asked_for_at_each_event).within(seconds(180)),
        shared!(drift::case_49_a_status_write_leaves_others_fields_alone),
        shared!(drift::case_67_a_concurrent_writer_on_the_parent),
        shared!(errors::an_error_in_an_output_names_child_place_and_rule),
        shared!(refusals::case_16_a_node_port_that_is_taken).within(seconds(180)),
        shared!(refusals::case_25_a_quota_of_no_pods).within(seconds(180)),
        shared!(refusals::case_26_a_namespace_that_enforces_restricted),
        shared!(refusals::a_policy_that_denies_is_waited_for),
        shared!(failed::pods_that_ended_are_replaced_with_back_off).within(seconds(180)),
        shared!(failed::pods_that_may_come_right_are_waited_for),
        shared!(failed::pods_that_were_to_end_are_kept).within(seconds(180)),
        private!(plugins::case_61_a_large_plugin_is_told_apart_from_a_small_one, crd::without()).within(seconds(180)),
        shared!(plugins::case_63_a_start_compiles_nothing_that_was_compiled),
        private!(plugins::case_77_a_deadline_always_exists, crd::without()).within(seconds(180)),
        private!(hostile::case_79_each_hostile_component_is_stopped_while_others_serve, crd::without())
            .within(seconds(300)),
        private!(wire::case_35_silence_a_restart_and_a_right_that_is_withdrawn).within(seconds(600)),
        shared!(wire::case_36_a_410_lists_anew_wherever_it_comes).within(seconds(300)),
        private!(crowd::case_40_a_crowd_stays_within_the_shipped_memory_limit, crowd::bare()).within(seconds(900)),
        private!(crowd::case_81_the_last_node_port_is_told_and_heals, crowd::bare()).within(seconds(300)),
        private!(chaos::nothing_is_lost_whatever_fails).within(seconds(900)),
        private!(chaos::two_hosts_whose_clocks_are_off_lose_nothing).within(seconds(600)),
        shared!(databases::levers_reach_pod_and_service),
        shared!(databases::a_service_becomes_internal_and_is_opened_again),
        shared!(databases::a_node_port_of_ones_choice_may_be_taken).within(seconds(180)),
        shared!(databases::case_26_pods_comply_with_a_restricted_namespace),
        shared!(databases::a_spec_that_cannot_be_is_refused_at_admission),
        shared!(databases::storage_and_credentials_are_not_taken_back),
        shared!(databases::every_field_is_explained),
        shared!(languages::python_serves).within(seconds(300)).when_asked(),
        shared!(languages::javascript_serves).within(seconds(300)).when_asked(),
        shared!(languages::rust_for_wasip1_serves).within(seconds(300)).when_asked(),
        shared!(languages::rust_for_wasip2_serves).within(seconds(300)).when_asked(),
        private!(languages::static_site_in_python_serves, crd::without()).within(seconds(400)).when_asked(),
        shared!(upgrades::mongo_moves_step_by_step).within(seconds(300)),
        shared!(upgrades::a_step_goes_on_under_another_host).within(seconds(180)),
        shared!(upgrades::a_job_that_fails_says_what_to_do).within(seconds(180)),
        shared!(upgrades::mysql_moves_when_the_new_server_is_ready).within(seconds(180)),
        shared!(upgrades::storage_is_added_and_grows).within(seconds(180)),
        shared!(upgrades::a_step_whose_image_cannot_be_pulled_is_taken_back).within(seconds(180)),
        shared!(upgrades::without_storage_any_version_may_run),
        shared!(upgrades::kept_data_tells_its_version_to_a_later_database).within(seconds(240)),
        shared!(upgrades::a_secret_of_the_users_own_opens_server_and_job).within(seconds(180)),
    ])
}
