//! One list of behaviours, on a hub in the process and on one behind a socket.

#![cfg(all(feature = "client", feature = "embedded"))]
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test says what went wrong by panicking"
)]

mod behaviours;
#[allow(dead_code, reason = "shared with other tests")]
mod stage;

use stage::{Kind, Stage};

macro_rules! on_both {
    ($($behaviour:ident)*) => {
        mod embedded {
            $(#[tokio::test]
            async fn $behaviour() {
                super::behaviours::$behaviour(super::Stage::new(super::Kind::Embedded).await).await;
            })*
        }
        mod client {
            $(#[tokio::test]
            async fn $behaviour() {
                super::behaviours::$behaviour(super::Stage::new(super::Kind::Client).await).await;
            })*
        }
    };
}

on_both! {
    a_session_is_told_with_its_states
    a_yes_allows_exactly_one_call
    a_no_allows_nothing
    consent_is_for_its_session
    consent_is_for_its_action
    what_breaks_a_rule_is_refused_by_its_id
    a_last_word_that_breaks_a_rule_ends_the_session_all_the_same
    a_dropped_session_is_closed_honestly
    a_panic_is_told
    a_cancelled_future_closes_its_tool
    a_tool_that_fails_or_is_slow_is_told
    tools_run_side_by_side
    the_persons_stop_reaches_the_agent
    a_stop_ends_a_question
    what_was_meant_is_asked
    work_goes_on_while_a_person_is_asked
    output_is_whole_when_the_agent_goes_on
    secrets_are_not_told
    what_is_too_much_is_refused_and_a_long_output_is_not
}
