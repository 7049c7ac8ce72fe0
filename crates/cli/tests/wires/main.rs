//! One table of behaviours, run on each transport against the real binary.
//!
//! A row is a behaviour, with a note on how the transports differ. A column is a transport. Each cell is a test, named
//! `TRANSPORT::BEHAVIOUR`, with its own hub as a child process and an agent on HTTP. It runs a second time with a hub of
//! several shards, named `TRANSPORT::shards::BEHAVIOUR`.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test reports a failure by panicking"
)]

mod disconnects;
mod event_shaping;
mod fixture;
mod forged_replies;
#[cfg(feature = "grpc")]
mod grpc;
mod handshake;
mod late_join_and_resume;
mod replies;
mod slow_listeners;
mod sse;
mod stdio;
mod transport;
mod unix;
mod websocket;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use transport::TransportKind;

/// A behaviour that all transports share.
struct Behaviour {
    name: &'static str,
    run: fn(TransportKind),
    /// How the transports differ, in the order SSE, WebSocket, Unix socket, stdio. Empty if they do not. gRPC behaves like the Unix
    /// socket, and ends with a status instead of a close code.
    differences: &'static str,
}

const fn behaviour(name: &'static str, run: fn(TransportKind), differences: &'static str) -> Behaviour {
    Behaviour { name, run, differences }
}

const BEHAVIOURS: &[Behaviour] = &[
    behaviour("large_messages_are_accepted", handshake::large_messages_are_accepted, ""),
    behaviour("every_capability_is_echoed", handshake::every_capability_is_echoed, ""),
    behaviour(
        "handshake_messages_are_the_same_on_every_transport",
        handshake::handshake_messages_are_the_same_on_every_transport,
        "",
    ),
    behaviour(
        "an_unsupported_version_is_rejected",
        handshake::an_unsupported_version_is_rejected,
        "409; close 4001; end; a result, and the connection stays open",
    ),
    behaviour(
        "impossible_capabilities_are_rejected",
        handshake::impossible_capabilities_are_rejected,
        "409; close 4001; end; a result, and the connection stays open",
    ),
    behaviour(
        "a_malformed_request_is_refused",
        handshake::a_malformed_request_is_refused,
        "400; close 4001; end; a result, and the connection stays open",
    ),
    behaviour(
        "the_first_message_must_be_a_subscription_request",
        handshake::the_first_message_must_be_a_subscription_request,
        "400; close 4004; end; error -32602",
    ),
    behaviour(
        "an_unauthenticated_listener_is_refused",
        handshake::an_unauthenticated_listener_is_refused,
        "401 with a message; 401 to the upgrade; the others trust the user who started the hub",
    ),
    behaviour(
        "an_agent_token_cannot_subscribe",
        handshake::an_agent_token_cannot_subscribe,
        "403; close 4003; the others have no tokens",
    ),
    behaviour(
        "narrower_capabilities_take_effect_immediately",
        handshake::narrower_capabilities_take_effect_immediately,
        "",
    ),
    behaviour(
        "an_impossible_renegotiation_ends_the_subscription",
        handshake::an_impossible_renegotiation_ends_the_subscription,
        "409 and end; close 4001; a close and end; a close, and the connection stays open",
    ),
    behaviour(
        "a_listener_can_close_its_subscription",
        handshake::a_listener_can_close_its_subscription,
        "204 and end; close 4005; end; the connection stays open for another subscription",
    ),
    behaviour(
        "a_signed_manifest_is_inlined_on_request",
        handshake::a_signed_manifest_is_inlined_on_request,
        "",
    ),
    behaviour(
        "every_transport_delivers_the_same_events",
        event_shaping::every_transport_delivers_the_same_events,
        "",
    ),
    behaviour("the_requested_verbosity_is_used", event_shaping::the_requested_verbosity_is_used, ""),
    behaviour("the_requested_language_is_used", event_shaping::the_requested_language_is_used, ""),
    behaviour(
        "streamed_text_is_split_into_sentences",
        event_shaping::streamed_text_is_split_into_sentences,
        "",
    ),
    behaviour(
        "filters_apply_but_critical_events_pass",
        event_shaping::filters_apply_but_critical_events_pass,
        "",
    ),
    behaviour(
        "progress_is_coalesced_to_keep_the_rate_limit",
        event_shaping::progress_is_coalesced_to_keep_the_rate_limit,
        "",
    ),
    behaviour(
        "an_acceptance_is_announced_to_all_listeners",
        replies::an_acceptance_is_announced_to_all_listeners,
        "",
    ),
    behaviour(
        "a_rejection_is_announced_to_all_listeners",
        replies::a_rejection_is_announced_to_all_listeners,
        "",
    ),
    behaviour("a_clarification_is_answered", replies::a_clarification_is_answered, ""),
    behaviour(
        "a_deadline_extension_moves_the_deadline",
        replies::a_deadline_extension_moves_the_deadline,
        "",
    ),
    behaviour("a_listener_can_stop_the_session", replies::a_listener_can_stop_the_session, ""),
    behaviour(
        "forged_replies_have_no_effect",
        forged_replies::forged_replies_have_no_effect,
        "on HTTP a request may name any subscription of the user; on the others only the subscription of its connection",
    ),
    behaviour("only_the_first_reply_counts", forged_replies::only_the_first_reply_counts, ""),
    behaviour("a_late_reply_is_ignored", forged_replies::a_late_reply_is_ignored, ""),
    behaviour("an_observer_cannot_reply", forged_replies::an_observer_cannot_reply, ""),
    behaviour(
        "a_question_stays_open_across_a_hub_restart",
        disconnects::a_question_stays_open_across_a_hub_restart,
        "the message and end; the message and close 1001; the message and end; aaep.close and end",
    ),
    behaviour(
        "a_lost_connection_counts_as_closure",
        disconnects::a_lost_connection_counts_as_closure,
        "the listener can reconnect within 30 s; an immediate closure; an immediate closure; the hub exits with its parent",
    ),
    behaviour(
        "another_connection_can_take_over",
        disconnects::another_connection_can_take_over,
        "the message and end; the message and close 4000; the message and end; aaep.close, and the connection stays open",
    ),
    behaviour(
        "invalid_messages_are_tolerated_up_to_a_limit",
        disconnects::invalid_messages_are_tolerated_up_to_a_limit,
        "each is answered; close 4004 after eight; a close and end after eight; each is answered",
    ),
    behaviour(
        "an_oversized_message_is_rejected",
        disconnects::an_oversized_message_is_rejected,
        "413; close 1009; a close and end; error -32600",
    ),
    behaviour("heartbeats_are_sent", disconnects::heartbeats_are_sent, "a comment; a ping; none; aaep.ping"),
    behaviour(
        "a_late_listener_receives_the_current_state",
        late_join_and_resume::a_late_listener_receives_the_current_state,
        "",
    ),
    behaviour(
        "a_returning_listener_resumes_or_receives_the_current_state",
        late_join_and_resume::a_returning_listener_resumes_or_receives_the_current_state,
        "resumes; the others subscribe again and receive the current state",
    ),
    behaviour(
        "after_a_crash_a_listener_resumes_or_receives_the_current_state",
        late_join_and_resume::after_a_crash_a_listener_resumes_or_receives_the_current_state,
        "resumes; the others subscribe again and receive the current state",
    ),
    behaviour(
        "overtaken_events_are_not_lost",
        late_join_and_resume::overtaken_events_are_not_lost,
        "resumes before the overtaken events; the others deliver these events later",
    ),
    behaviour(
        "a_new_subscription_can_resume_after_an_event",
        late_join_and_resume::a_new_subscription_can_resume_after_an_event,
        "every event has an id; the others report the position on request",
    ),
    behaviour(
        "a_gap_is_reported",
        late_join_and_resume::a_gap_is_reported,
        "a message, the state with a gap mark, the questions; the others do not resume",
    ),
    behaviour(
        "a_slow_listener_receives_all_text_once",
        slow_listeners::a_slow_listener_receives_all_text_once,
        "",
    ),
    behaviour(
        "a_stalled_listener_is_disconnected",
        slow_listeners::a_stalled_listener_is_disconnected,
        "the message and end; the message and close 4004; the message and end; aaep.close, and the connection stays open",
    ),
];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let cells = BEHAVIOURS.iter().flat_map(|row| TransportKind::ALL.iter().map(move |kind| (row, *kind)));
    let cells = cells.flat_map(|(row, kind)| [1, fixture::SEVERAL_SHARDS].map(|shards| (row, kind, shards)));
    let trials = cells
        .map(|(row, kind, shards)| {
            let folder = if shards > 1 { "shards::" } else { "" };
            let name = format!("{}::{folder}{}", kind.name(), row.name);
            Trial::test(name, move || {
                fixture::set_shards(shards);
                std::panic::catch_unwind(|| (row.run)(kind)).map_err(|panic| {
                    let string = panic.downcast_ref::<String>().map(String::as_str);
                    let message =
                        string.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
                    if row.differences.is_empty() {
                        message.into()
                    } else {
                        format!("{message}\n(how the transports differ here: {})", row.differences).into()
                    }
                })
            })
        })
        .collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}
