//! One list of behaviours, on a hub in the process and on one behind a socket.

mod behaviours;
mod languages;
mod secrets;
mod trouble;

use crate::support::stage::{Kind, Stage};

macro_rules! on_both {
    ($($room:ident { $($behaviour:ident)* })*) => {
        mod embedded {
            $($(#[tokio::test]
            async fn $behaviour() {
                super::$room::$behaviour(super::Stage::new(super::Kind::Embedded).await).await;
            })*)*
        }
        mod client {
            $($(#[tokio::test]
            async fn $behaviour() {
                super::$room::$behaviour(super::Stage::new(super::Kind::Client).await).await;
            })*)*
        }
    };
}

on_both! {
    behaviours {
        a_session_is_told_with_its_states
        a_yes_allows_exactly_one_call
        a_no_allows_nothing
        consent_is_for_its_session
        consent_is_for_its_action
        what_breaks_a_rule_is_refused_by_its_id
        what_is_nested_too_deep_is_refused_whole
        a_last_word_that_breaks_a_rule_ends_the_session_all_the_same
        a_dropped_session_is_closed_honestly
        of_a_yes_that_was_not_used_it_is_told_so
        a_panic_is_told
        a_cancelled_future_closes_its_tool
        a_tool_that_fails_or_is_slow_is_told
        tools_run_side_by_side
        the_persons_stop_reaches_the_agent
        a_stop_ends_a_question
        what_was_meant_is_asked
        work_goes_on_while_a_person_is_asked
        output_is_whole_when_the_agent_goes_on
        what_is_too_much_is_refused_and_a_long_output_is_not
    }
    languages {
        everybody_hears_their_own_language
        a_question_is_heard_in_a_language_that_all_of_it_is_in
        what_is_being_done_is_told_in_its_own_words
        what_was_meant_is_asked_in_ones_own_language
        a_tools_failure_a_hand_off_and_progress_are_told_in_ones_own_language
        an_output_says_its_language
        the_librarys_own_words_do_not_pass_for_another_language
        a_session_says_its_languages_and_the_agents_name
        states_are_told_in_words_of_the_agent
        who_asked_for_a_cancellation_is_told_so
        what_is_no_language_is_refused
    }
    secrets {
        secrets_are_not_told
        every_field_that_is_told_is_without_secrets
    }
    trouble {
        a_question_that_nobody_waits_for_is_taken_back
        a_question_that_was_never_sent_is_never_heard
        of_two_answers_one_counts
        a_tool_that_returns_after_the_end_is_told_so
        a_tool_that_comes_back_with_too_much_is_closed_in_plain_words
        a_tool_that_never_returns_is_given_up
        bytes_are_text_however_they_are_cut_and_whatever_they_are
    }
}
