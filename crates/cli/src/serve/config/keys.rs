//! The one table of keys.

use super::Config;
use super::value::{DAY, GIB, HOUR, Kind, MIB, MINUTE, Place, SECOND};

/// A setting: what it is called, what may stand there, what it means, and where it goes.
pub(super) struct Key {
    /// `section.name`, or `name` alone.
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) meaning: &'static str,
    pub(super) place: for<'c> fn(&'c mut Config) -> Place<'c>,
}

impl Key {
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.name == name)
    }

    /// `hub.lease` is `--hub-lease`.
    pub(super) fn flag(&self) -> String {
        self.name.replace(['.', '_'], "-")
    }

    /// `hub.lease` is `SAYSO_HUB_LEASE`.
    pub(super) fn variable(&self) -> String {
        format!("SAYSO_{}", self.name.replace('.', "_").to_ascii_uppercase())
    }

    /// Whether it is a number that something is held to.
    pub(super) fn is_limit(&self) -> bool {
        matches!(self.kind, Kind::Count(..) | Kind::Bytes(..) | Kind::Time(..))
    }
}

use Kind::{Address, Bytes, Count, Flag, List, Path, Time};

/// Declares the table: each key with the values that it takes, the field that holds it, and its meaning.
macro_rules! keys {
    ($($name:literal: $kind:expr => $place:ident($($field:ident).+), $meaning:literal;)*) => {
        pub(super) static KEYS: &[Key] = &[$(
            Key { name: $name, kind: $kind, meaning: $meaning, place: |config| Place::$place(&mut config.$($field).+) },
        )*];
    };
}

keys! {
    "listen": Address => Address(listen),
        "Where to listen; port 0 picks one.";
    "data": Path => Path(data),
        "The folder for what is kept.";
    "memory": Flag => Flag(memory),
        "Keeps everything in memory: what is said is gone when the hub stops.";
    "tokens": Path => MaybePath(tokens),
        "The file of tokens; in the data folder if not said.";
    "open": Flag => Flag(open),
        "Lets everybody in, without a token. On loopback only.";
    "host": List => List(host),
        "Other hosts under which it may be addressed, with their ports.";
    "tls_cert": Path => MaybePath(tls_cert),
        "The certificate for TLS, with those above it: a file of PEM.";
    "tls_key": Path => MaybePath(tls_key),
        "The certificate's private key: a file of PEM.";
    "unix": Path => MaybePath(unix),
        "Also takes listeners on a Unix socket, or with usual where they look for it; only the same user is heard.";
    "stdio": Flag => Flag(stdio),
        "Also takes one listener on standard input and output, as JSON-RPC; ends when the input does.";
    "compat": Flag => Flag(compat),
        "Also speaks the dialect of AAEP's own packages, which know no handshake; with the demo's assistant. On loopback only.";
    "demo_agent": Flag => Flag(demo_agent),
        "Has the demo's assistant at hand: POST /demo asks it.";
    "threads": Count(1, 64) => Size(threads),
        "Threads that serve connections.";

    "http.connections": Count(1, 1_000_000) => Size(wire.connections),
        "Connections at once, of all kinds.";
    "http.head_bytes": Bytes(256, MIB) => Size(wire.head_bytes),
        "Bytes of a request's head.";
    "http.headers": Count(1, wire::http::Head::MOST_HEADERS as u64) => Size(wire.headers),
        "Headers of a request.";
    "http.body_bytes": Bytes(256, GIB) => Size(wire.body_bytes),
        "Bytes of a request's body.";
    "http.head_time": Time(50, HOUR) => Time(wire.head_time),
        "How long a request's head may take, and the first message on a WebSocket or Unix socket.";
    "http.body_time": Time(50, HOUR) => Time(wire.body_time),
        "How long a request's body may take.";
    "http.answer_time": Time(50, HOUR) => Time(wire.answer_time),
        "How long the other side may take to take an answer.";
    "http.idle_time": Time(50, DAY) => Time(wire.idle_time),
        "How long a connection may stay idle between requests.";
    "http.longest_wait": Time(SECOND, DAY) => Time(wire.longest_wait),
        "How long one request may wait for a person's answer.";
    "http.heartbeat": Time(50, HOUR) => Time(heartbeat),
        "How often a stream of events gives a sign of life.";

    "sign_in.time": Time(SECOND, 366 * DAY) => Time(wire.sign_in_time),
        "How long a browser stays signed in.";
    "sign_in.attempts": Count(1, 1_000_000) => Size(wire.sign_in_attempts),
        "Attempts to sign in that may fail in a minute from one address.";

    "agents.calls": Count(1, 65_536) => Size(wire.calls),
        "Calls of an agent's WebSocket that are not answered yet, and calls in one batch.";
    "agents.untold": Count(1, 1_000_000) => Size(wire.untold),
        "What an agent's WebSocket may be told that it has not taken, before it is closed.";

    "messages.websocket_bytes": Bytes(256, GIB) => Size(wire.websocket_bytes),
        "Bytes of a message on a WebSocket.";
    "messages.unix_bytes": Bytes(256, GIB) => Size(wire.unix_bytes),
        "Bytes of a message on a Unix socket.";
    "messages.stdio_bytes": Bytes(256, GIB) => Size(wire.stdio_bytes),
        "Bytes of a line on standard input.";
    "messages.malformed": Count(1, 1_000_000) => Size(wire.malformed),
        "So many things that are no message end a WebSocket or a connection on a Unix socket.";
    "messages.ping_time": Time(50, HOUR) => Time(wire.ping_time),
        "How often a WebSocket is asked for a sign of life; after three in vain it is let go.";
    "messages.write_time": Time(50, HOUR) => Time(wire.message_time),
        "How long the other side may take to take one message.";

    "dialect.questions": Count(1, 65_536) => Size(wire.dialect.questions),
        "Questions that are remembered as told to a connection of compat; an answer to a forgotten one speaks for its present terms.";
    "dialect.told": Count(1, 1_000_000) => Size(wire.dialect.told),
        "Events that are remembered as told to a connection of compat, so that a change of terms tells none of them again.";
    "dialect.earlier": Count(1, 1_000) => Size(wire.dialect.earlier),
        "Earlier subscriptions that a connection of compat keeps for the questions that they were told.";
    "dialect.answers": Count(1, 65_536) => Size(wire.dialect.answers),
        "Answers to a handshake that wait for a stream of compat; who asks for more waits.";
    "dialect.patience": Time(0, HOUR) => Time(wire.dialect.patience),
        "How long a wish that comes before its stream of compat waits for it.";

    "demo.sessions": Count(1, 10_000) => Size(demo.sessions),
        "Sessions of the demo's assistant at once.";
    "demo.wishes": Count(1, 65_536) => Size(demo.wishes),
        "Requests that wait until the demo's assistant looks at them.";
    "demo.time": Time(SECOND, DAY) => Time(demo.time),
        "How long a person has for an answer to the demo's assistant.";

    "hub.sessions": Count(1, 10_000_000) => Size(hub.sessions),
        "Open sessions.";
    "hub.subscriptions": Count(1, 10_000_000) => Size(hub.subscriptions),
        "Open subscriptions.";
    "hub.subscriptions_per_principal": Count(1, 10_000_000) => Size(hub.subscriptions_per_principal),
        "Open subscriptions of one token; with open only the number in all counts.";
    "hub.criticals_per_minute": Count(1, 1_000_000) => Size(hub.criticals_per_minute),
        "Critical events of one agent for one person in a minute, beside its questions.";
    "hub.questions_per_minute": Count(1, 1_000_000) => Size(hub.questions_per_minute),
        "Questions of one agent to one person in a minute.";
    "hub.waits_of_principal": Count(1, 1_000_000) => Size(hub.waits_of_principal),
        "Waits for an answer that one token may have.";
    "hub.followers": Count(1, 65_536) => Size(hub.followers),
        "WebSockets of agents that follow one session.";
    "hub.events_in_request": Count(1, 100_000) => Size(hub.events_in_request),
        "Events in one request.";
    "hub.open_in_session": Count(1, 65_536) => Size(hub.open_in_session),
        "Tools, outputs and questions that are open in one session, each.";
    "hub.lease": Time(100, 7 * DAY) => Millis(hub.lease),
        "How long an agent counts as there without a sign of life.";
    "hub.attach_window": Time(0, DAY) => Millis(hub.attach_window),
        "How long a subscription waits for its first connection; with 0 it has none but on wires that listen at once.";
    "hub.resume_window": Time(0, DAY) => Millis(hub.resume_window),
        "How long a subscription outlives its connection.";
    "hub.replay": Count(0, 1_000_000) => Size(hub.replay),
        "Events replayed to a listener that returns.";
    "hub.requests_in_turn": Count(1, 65_536) => Size(hub.requests_in_turn),
        "Requests that are written to the disk together.";
    "hub.longest_sleep": Time(10, MINUTE) => Millis(hub.longest_sleep),
        "The clock is looked at so often at least, so that one that jumps keeps nobody waiting.";

    "questions.open_in_session": Count(1, 65_536) => Size(hub.questions.open_in_session),
        "Open questions of one session.";
    "questions.open_of_agent": Count(1, 65_536) => Size(hub.questions.open_of_agent),
        "Open questions of one agent.";
    "questions.open_in_all": Count(1, 10_000_000) => Size(hub.questions.open_in_all),
        "Open questions in all.";
    "questions.resolved_in_session": Count(1, 65_536) => Size(hub.questions.resolved_in_session),
        "Resolved questions that a session keeps whole; no call can be made on an older one.";

    "shape.text_bytes": Bytes(64, 16_384) => Size(hub.shape.text),
        "Bytes of text that are held of one output, waiting for the end of a sentence.";
    "shape.outputs": Count(1, 65_536) => Size(hub.shape.outputs),
        "Outputs of which text is held for a listener.";
    "shape.events": Count(1, 1_000_000) => Size(hub.shape.events),
        "Events that are held for a listener's rate and pace.";

    "lanes.frames": Count(1, 10_000_000) => Size(fanout.lanes.frames),
        "Frames that a listener may be behind.";
    "lanes.merge": Count(1, 10_000_000) => Size(fanout.lanes.merge),
        "Frames that a listener may be behind before what waits for it is joined.";
    "lanes.burst": Time(0, HOUR) => Time(fanout.burst),
        "How long a listener may be so far behind before what waits for it is joined.";
    "lanes.unsent_bytes": Bytes(1, GIB) => Size(wire.unsent_bytes),
        "Bytes of a stream that the system takes beyond what it can send at once (Linux).";
    "lanes.bytes": Bytes(1024, 64 * GIB) => Size(fanout.lanes.bytes),
        "Bytes that a listener may be behind.";
    "lanes.in_hand": Bytes(1, GIB) => Size(fanout.in_hand),
        "Bytes taken out of a listener's queue before its socket has them; what is critical waits for no more.";

    "journal.most_bytes": Bytes(256 * 1024, 1 << 50) => MaybeSize(journal.most_bytes),
        "How large the journal's file may get; beyond that nothing more is taken.";

    "retention.events": Time(SECOND, 36_500 * DAY) => MaybeMillis(hub.retention.events),
        "How old events of ended sessions may get, and the record of refused attempts.";
    "retention.decisions": Time(SECOND, 36_500 * DAY) => MaybeMillis(hub.retention.decisions),
        "How old decisions and their receipts may get once their session has ended.";
    "retention.keys": Time(SECOND, 36_500 * DAY) => MaybeMillis(hub.retention.keys),
        "How old idempotency keys may get.";
    "retention.bytes": Bytes(1024, 1 << 50) => MaybeSize(hub.retention.bytes),
        "How much the journal keeps; beyond that the oldest events of ended sessions go.";
    "retention.step": Count(1, 100_000) => Size(hub.retention.step),
        "How many rows of a kind are looked at in one step, for which everybody else waits.";
    "retention.every": Time(100, DAY) => Millis(hub.trim_every),
        "How often is looked for what may be forgotten.";
}
