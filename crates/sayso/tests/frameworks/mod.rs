//! Framework integrations through callbacks and through an event bridge, on an embedded hub and on a remote one.

mod bridge;
mod callbacks;
mod random_scenarios;

macro_rules! on_both_hub_kinds {
    ($module:ident: $($behaviour:ident)*) => {
        mod $module {
            mod embedded {
                $(#[tokio::test]
                async fn $behaviour() {
                    crate::frameworks::$module::$behaviour(crate::support::fixture::HubFixture::new(crate::support::fixture::HubKind::Embedded).await).await;
                })*
            }
            mod remote {
                $(#[tokio::test]
                async fn $behaviour() {
                    crate::frameworks::$module::$behaviour(crate::support::fixture::HubFixture::new(crate::support::fixture::HubKind::Remote).await).await;
                })*
            }
        }
    };
}

/// Runs each behaviour as a test. The modules inside are named after the files that define the behaviours.
mod on_both_hubs {
    on_both_hub_kinds! { callbacks:
        each_callback_emits_its_event
        an_acceptance_grants_permission_after_the_call_is_announced
        a_rejected_tool_does_not_run
        an_unknown_tool_requires_consent
        a_thread_without_a_runtime_can_wait_for_permission
        unmatched_ends_are_faults_and_emit_no_events
        an_unfinished_tool_is_closed_with_the_session
        callbacks_after_the_end_are_refused
        callbacks_before_the_start_are_faults
        nested_chains_are_not_reported
        a_model_run_inside_a_tool_is_reported_as_progress_and_each_model_has_its_own_output
        a_failed_chain_is_reported
        dropping_the_reporter_ends_its_session
        a_stop_request_reaches_the_framework
        a_question_nobody_waits_for_is_withdrawn
        a_tool_result_is_announced_only_through_its_description
        long_and_empty_texts_are_accepted
        the_outcome_of_a_hand_off_reaches_the_framework
    }
    on_both_hub_kinds! { bridge:
        a_stream_of_steps_is_reported
        decisions_are_returned_to_the_framework
        concurrent_questions_get_their_own_answers
        clarification_answers_are_returned_to_the_framework
        the_outcome_of_a_hand_off_is_returned_to_the_framework
        a_stalled_stream_ends_the_session_with_an_error
        the_idle_timeout_is_paused_while_a_question_is_open
        an_early_end_of_the_stream_ends_the_session_with_an_error
        a_stream_error_is_reported_with_its_reason
        an_out_of_order_step_is_refused_and_the_rest_continues
        output_bytes_may_be_split_anywhere
        a_stop_request_drops_the_stream
        steps_after_the_end_are_faults
        a_failed_start_is_reported
        a_panic_in_the_mapping_is_reported
        the_end_of_a_session_withdraws_its_open_question
        an_abandoned_question_during_output_does_not_keep_the_tool_open
    }
}
