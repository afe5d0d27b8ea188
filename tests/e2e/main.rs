//! End-to-end tests: what a user sees of a real host on a real control plane. `make test-e2e ARGS=case_01`.
//!
//! To add one: an `async fn case_NN_…(case: Case) -> Outcome` in the file it belongs to, and its name below.

mod harness;
mod ownership;

use std::process::ExitCode;

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
    ])
}
