//! What frameworks do, told by callbacks and by a bridge, on a hub in the process and on one behind a socket.

mod bridge;
mod callbacks;
mod whatsoever;

macro_rules! on_both {
    ($room:ident: $($behaviour:ident)*) => {
        mod $room {
            mod embedded {
                $(#[tokio::test]
                async fn $behaviour() {
                    crate::frameworks::$room::$behaviour(crate::support::stage::Stage::new(crate::support::stage::Kind::Embedded).await).await;
                })*
            }
            mod client {
                $(#[tokio::test]
                async fn $behaviour() {
                    crate::frameworks::$room::$behaviour(crate::support::stage::Stage::new(crate::support::stage::Kind::Client).await).await;
                })*
            }
        }
    };
}

/// Each behaviour, under the name of its room.
mod on {
    on_both! { callbacks:
        each_callback_is_its_event
        a_yes_opens_the_gate_after_the_call_was_told
        a_veto_keeps_the_tool_from_running
        a_tool_of_which_nothing_is_known_is_asked_for
        a_plain_thread_waits_at_the_gate
        ends_that_are_wrong_are_faults_and_are_not_told
        a_tool_that_never_ends_is_closed_with_the_session
        nothing_is_taken_after_the_end
        nothing_is_told_before_the_start
        a_chain_inside_the_chain_is_not_told
        a_model_inside_a_tool_is_progress_and_two_models_are_two_outputs
        a_chain_that_fails_is_told
        a_narrator_that_is_dropped_ends_its_session
        the_persons_stop_is_told_to_the_framework
        a_gate_that_nobody_waits_at_stays_shut
        a_tools_output_is_told_in_the_authors_words_or_not_at_all
        long_and_empty_words_are_told
    }
    on_both! { bridge:
        a_stream_is_told
        a_yes_and_a_no_go_back_to_the_native_side
        two_questions_at_once_have_their_own_answers
        what_was_meant_goes_back_to_the_native_side
        a_stream_that_stalls_is_closed_honestly
        the_clock_stands_still_while_a_person_is_asked
        a_stream_that_ends_early_is_closed_honestly
        a_stream_that_errs_says_why
        a_wrong_order_has_its_rule_and_the_rest_goes_on
        bytes_may_be_cut_anywhere
        the_persons_stop_drops_the_stream
        steps_after_the_end_are_faults
        a_session_that_cannot_start_is_told
        a_panic_while_mapping_is_told
        a_question_is_not_left_open_by_the_end
        a_question_that_was_left_behind_an_output_does_not_keep_the_tool_open
    }
}
