//! The same behaviours, tested on an embedded hub and on a remote one.

mod failures;
mod hand_offs;
mod languages;
mod secrets;
mod sessions;
mod several_agents;

use crate::support::fixture::{HubFixture, HubKind};

macro_rules! on_both_hub_kinds {
    ($($module:ident { $($behaviour:ident)* })*) => {
        mod embedded {
            $($(#[tokio::test]
            async fn $behaviour() {
                super::$module::$behaviour(super::HubFixture::new(super::HubKind::Embedded).await).await;
            })*)*
        }
        mod remote {
            $($(#[tokio::test]
            async fn $behaviour() {
                super::$module::$behaviour(super::HubFixture::new(super::HubKind::Remote).await).await;
            })*)*
        }
    };
}

on_both_hub_kinds! {
    sessions {
        a_session_reports_its_events_and_states
        an_acceptance_allows_exactly_one_call
        a_rejection_allows_no_call
        an_answer_has_a_receipt_that_others_can_verify
        consent_is_bound_to_its_session
        consent_is_bound_to_its_action
        a_rule_violation_is_refused_with_the_rule_id
        deeply_nested_values_are_refused
        an_invalid_final_summary_still_ends_the_session
        a_dropped_session_ends_with_an_error
        an_unused_grant_is_reported_when_the_session_is_dropped
        a_panic_of_the_agent_is_reported
        a_cancelled_future_closes_its_tool_call
        a_failed_tool_and_a_timed_out_tool_are_reported
        tools_run_concurrently
        a_stop_request_reaches_the_agent
        a_stop_request_ends_an_open_question
        clarifications_return_the_answer
        the_agent_can_work_while_a_question_is_open
        output_is_completed_before_the_next_activity
        quick_progress_is_merged_and_its_last_update_is_sent
        held_progress_is_sent_when_its_time_is_over
        closing_the_hub_sends_held_progress
        an_oversized_text_is_refused_but_a_long_output_is_not
    }
    several_agents {
        each_producer_has_its_own_states_tools_and_outputs
        a_yes_to_one_producer_permits_no_call_by_another
        an_unknown_producer_is_refused
        an_invited_agent_joins_once_and_speaks_as_itself
        a_session_can_be_a_part_of_another_one
    }
    languages {
        each_listener_receives_its_own_language
        a_question_uses_a_language_that_covers_all_its_texts
        the_invocation_summary_announces_the_call
        clarifications_are_localized
        tool_failures_hand_offs_and_progress_are_localized
        an_output_carries_its_language
        the_librarys_own_texts_are_tagged_as_english
        a_session_reports_its_languages_and_the_agent_name
        reported_states_use_the_agents_summaries
        a_custom_state_is_announced_with_its_defined_text
        a_cancellation_reports_who_requested_it
        an_invalid_language_tag_is_refused
    }
    secrets {
        secrets_are_redacted_across_chunks
        secrets_are_redacted_in_every_field
    }
    hand_offs {
        a_hand_off_returns_its_outcome
        a_hand_off_expires_and_a_dropped_one_is_withdrawn
    }
    failures {
        an_abandoned_question_is_withdrawn
        a_question_dropped_before_it_is_sent_does_not_stay_open
        only_one_of_two_answers_counts
        a_tool_result_after_the_end_is_an_error
        listeners_do_not_receive_an_oversized_tool_result
        a_tool_that_never_returns_times_out
        output_bytes_are_decoded_across_chunks
    }
}
