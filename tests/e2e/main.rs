//! End-to-end tests: what a user sees of a real host on a real control plane. `make test-e2e ARGS=case_01`.
//!
//! To add one: an `async fn case_NN_…(case: Case) -> Outcome` in the file it belongs to, and its name below.

mod harness;
mod ownership;
mod conflicts;
mod deletion;
mod fields;
mod faults;
mod guests;

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
    ])
}
