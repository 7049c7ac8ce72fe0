//! Every wire does the same: one table of behaviours, run on each wire against the real binary.
//!
//! A row is a behaviour and what wires do differently in it; a column is a wire. A test is a cell, named
//! `WIRE::BEHAVIOUR`, with a hub of its own as a child process and an agent on HTTP.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test says what went wrong by panicking"
)]

mod answers;
mod endings;
mod forgeries;
mod handshake;
mod returning;
mod shapes;
mod slow;
mod sse;
mod stage;
mod stdio;
mod unix;
mod websocket;
mod wire;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use wire::Kind;

/// A behaviour of all wires.
struct Row {
    name: &'static str,
    run: fn(Kind),
    /// What wires do each in their own way; nothing where all do the same.
    differs: &'static str,
}

const fn row(name: &'static str, run: fn(Kind), differs: &'static str) -> Row {
    Row { name, run, differs }
}

const TABLE: &[Row] = &[
    row("large_messages_are_carried", handshake::large_messages_are_carried, ""),
    row("every_capability_is_echoed", handshake::every_capability_is_echoed, ""),
    row(
        "another_version_is_refused",
        handshake::another_version_is_refused,
        "409; close 4001; end; a result, and the wire stays",
    ),
    row(
        "terms_that_cannot_be_are_refused",
        handshake::terms_that_cannot_be_are_refused,
        "409; close 4001; end; a result, and the wire stays",
    ),
    row(
        "a_malformed_request_is_refused",
        handshake::a_malformed_request_is_refused,
        "400; close 4001; end; a result, and the wire stays",
    ),
    row(
        "whoever_begins_with_something_else_is_not_heard",
        handshake::whoever_begins_with_something_else_is_not_heard,
        "400; close 4004; end; error -32602",
    ),
    row(
        "who_is_not_known_is_not_let_in",
        handshake::who_is_not_known_is_not_let_in,
        "401 with a message; 401 to the upgrade; only our own user gets as far as this",
    ),
    row(
        "an_agent_does_not_listen",
        handshake::an_agent_does_not_listen,
        "403; close 4003; the wire has no agents",
    ),
    row("narrower_terms_hold_from_then_on", handshake::narrower_terms_hold_from_then_on, ""),
    row(
        "other_terms_that_cannot_be_end_it",
        handshake::other_terms_that_cannot_be_end_it,
        "409 and end; close 4001; a close and end; a close, and the wire stays",
    ),
    row(
        "the_listener_closes",
        handshake::the_listener_closes,
        "204 and end; close 4005; end; the wire stays, and another subscription may follow",
    ),
    row(
        "a_signed_manifest_comes_inline_when_demanded",
        handshake::a_signed_manifest_comes_inline_when_demanded,
        "",
    ),
    row("the_same_is_heard_on_each", shapes::the_same_is_heard_on_each, ""),
    row("words_are_as_many_as_wanted", shapes::words_are_as_many_as_wanted, ""),
    row("language_is_as_wanted", shapes::language_is_as_wanted, ""),
    row("text_comes_in_sentences", shapes::text_comes_in_sentences, ""),
    row("filters_hold_and_what_is_critical_passes", shapes::filters_hold_and_what_is_critical_passes, ""),
    row("the_rate_is_kept_by_joining", shapes::the_rate_is_kept_by_joining, ""),
    row("a_yes_is_told_to_everybody", answers::a_yes_is_told_to_everybody, ""),
    row("a_no_is_told_to_everybody", answers::a_no_is_told_to_everybody, ""),
    row("what_was_meant_is_answered", answers::what_was_meant_is_answered, ""),
    row("more_time_moves_the_deadline", answers::more_time_moves_the_deadline, ""),
    row("the_person_stops_the_session", answers::the_person_stops_the_session, ""),
    row(
        "no_forgery_has_an_effect",
        forgeries::no_forgery_has_an_effect,
        "on HTTP a request may speak for any subscription of its sender; elsewhere for that of its connection only",
    ),
    row("an_answer_counts_once", forgeries::an_answer_counts_once, ""),
    row("an_answer_that_is_late_does_not_count", forgeries::an_answer_that_is_late_does_not_count, ""),
    row("who_only_observes_does_not_answer", forgeries::who_only_observes_does_not_answer, ""),
    row(
        "the_hub_stops_and_the_question_stays_open",
        endings::the_hub_stops_and_the_question_stays_open,
        "the message and end; the message and close 1001; the message and end; aaep.close and end",
    ),
    row(
        "a_lost_connection_is_a_closure",
        endings::a_lost_connection_is_a_closure,
        "within 30 s the listener may come back; elsewhere it counts at once; the hub ends with its parent",
    ),
    row(
        "another_connection_takes_over",
        endings::another_connection_takes_over,
        "the message and end; the message and close 4000; the message and end; aaep.close, and the wire stays",
    ),
    row(
        "what_is_no_message_is_borne_for_a_while",
        endings::what_is_no_message_is_borne_for_a_while,
        "each is answered; close 4004 after eight; a close and end after eight; each is answered",
    ),
    row(
        "a_message_that_is_too_long_is_not_taken",
        endings::a_message_that_is_too_long_is_not_taken,
        "413; close 1009; a close and end; error -32600",
    ),
    row("there_are_signs_of_life", endings::there_are_signs_of_life, "a comment; a ping; none; aaep.ping"),
    row(
        "who_joins_late_is_told_where_things_stand",
        returning::who_joins_late_is_told_where_things_stand,
        "",
    ),
    row(
        "who_returns_lacks_nothing",
        returning::who_returns_lacks_nothing,
        "resumes; elsewhere a fresh handshake and the present state",
    ),
    row(
        "who_returns_after_a_crash_lacks_nothing",
        returning::who_returns_after_a_crash_lacks_nothing,
        "resumes; elsewhere a fresh handshake and the present state",
    ),
    row(
        "what_was_overtaken_is_not_lost",
        returning::what_was_overtaken_is_not_lost,
        "resumes from before what was overtaken; elsewhere it comes in its turn",
    ),
    row(
        "a_new_subscription_goes_on_where_another_was",
        returning::a_new_subscription_goes_on_where_another_was,
        "has ids; elsewhere places are told to who asks for them",
    ),
    row(
        "a_gap_is_told",
        returning::a_gap_is_told,
        "a message, the state with a mark, the questions; elsewhere nobody resumes",
    ),
    row("who_is_slow_for_a_while_gets_all_text_once", slow::who_is_slow_for_a_while_gets_all_text_once, ""),
    row(
        "who_does_not_read_is_let_go",
        slow::who_does_not_read_is_let_go,
        "the message and end; the message and close 4004; the message and end; aaep.close, and the wire stays",
    ),
];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let cells = TABLE.iter().flat_map(|row| Kind::ALL.map(|kind| (row, kind)));
    let trials = cells
        .map(|(row, kind)| {
            let name = format!("{}::{}", kind.name(), row.name);
            Trial::test(name, move || {
                std::panic::catch_unwind(|| (row.run)(kind)).map_err(|panic| {
                    let text = panic.downcast_ref::<String>().map(String::as_str);
                    let said = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
                    if row.differs.is_empty() {
                        said.into()
                    } else {
                        format!("{said}\n(what the wires do differently here: {})", row.differs).into()
                    }
                })
            })
        })
        .collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}
