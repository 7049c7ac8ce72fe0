//! The one table of keys.

use super::Config;
use super::value::{DAY, GIB, HOUR, Kind, MIB, MINUTE, Place, SECOND};

/// A setting: what it is called, what may stand there, what it means, and where it goes.
pub(super) struct Key {
    /// `section.name`, or `name` alone.
    pub(super) name: &'static str,
    /// What may stand there.
    pub(super) kind: Kind,
    /// One sentence.
    pub(super) meaning: &'static str,
    /// Where it goes.
    pub(super) place: for<'c> fn(&'c mut Config) -> Place<'c>,
}

impl Key {
    /// The key of that name.
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

const fn key(
    name: &'static str,
    kind: Kind,
    meaning: &'static str,
    place: for<'c> fn(&'c mut Config) -> Place<'c>,
) -> Key {
    Key { name, kind, meaning, place }
}

use Kind::{Address, Bytes, Count, Flag, List, Path, Time};

/// All keys, by section.
pub(super) static KEYS: &[Key] = &[
    key("listen", Address, "Where to listen; port 0 picks one.", |c| Place::Address(&mut c.listen)),
    key("data", Path, "The folder for what is kept.", |c| Place::Path(&mut c.data)),
    key("memory", Flag, "Keeps everything in memory: what is said is gone when the hub stops.", |c| {
        Place::Flag(&mut c.memory)
    }),
    key("tokens", Path, "The file of tokens; in the data folder if not said.", |c| {
        Place::MaybePath(&mut c.tokens)
    }),
    key("open", Flag, "Lets everybody in, without a token. On loopback only.", |c| Place::Flag(&mut c.open)),
    key("host", List, "Other hosts under which it may be addressed, with their ports.", |c| {
        Place::List(&mut c.host)
    }),
    key("tls_cert", Path, "The certificate for TLS, with those above it: a file of PEM.", |c| {
        Place::MaybePath(&mut c.tls_cert)
    }),
    key("tls_key", Path, "The certificate's private key: a file of PEM.", |c| {
        Place::MaybePath(&mut c.tls_key)
    }),
    key(
        "unix",
        Path,
        "Also takes listeners on a Unix socket, or with usual where they look for it; only the same user is heard.",
        |c| Place::MaybePath(&mut c.unix),
    ),
    key(
        "stdio",
        Flag,
        "Also takes one listener on standard input and output, as JSON-RPC; ends when the input does.",
        |c| Place::Flag(&mut c.stdio),
    ),
    key(
        "compat",
        Flag,
        "Also speaks the dialect of AAEP's own packages, which know no handshake; with the demo's assistant. On loopback only.",
        |c| Place::Flag(&mut c.compat),
    ),
    key("demo_agent", Flag, "Has the demo's assistant at hand: POST /demo asks it.", |c| {
        Place::Flag(&mut c.demo_agent)
    }),
    key("threads", Count(1, 64), "Threads that serve connections.", |c| Place::Size(&mut c.threads)),
    key("http.connections", Count(1, 1_000_000), "Connections at once, of all kinds.", |c| {
        Place::Size(&mut c.wire.connections)
    }),
    key("http.head_bytes", Bytes(256, MIB), "Bytes of a request's head.", |c| {
        Place::Size(&mut c.wire.head_bytes)
    }),
    key("http.headers", Count(1, wire::http::Head::MOST_HEADERS as u64), "Headers of a request.", |c| {
        Place::Size(&mut c.wire.headers)
    }),
    key("http.body_bytes", Bytes(256, GIB), "Bytes of a request's body.", |c| {
        Place::Size(&mut c.wire.body_bytes)
    }),
    key(
        "http.head_time",
        Time(50, HOUR),
        "How long a request's head may take, and the first message on a WebSocket or Unix socket.",
        |c| Place::Time(&mut c.wire.head_time),
    ),
    key("http.body_time", Time(50, HOUR), "How long a request's body may take.", |c| {
        Place::Time(&mut c.wire.body_time)
    }),
    key("http.answer_time", Time(50, HOUR), "How long the other side may take to take an answer.", |c| {
        Place::Time(&mut c.wire.answer_time)
    }),
    key("http.idle_time", Time(50, DAY), "How long a connection may stay idle between requests.", |c| {
        Place::Time(&mut c.wire.idle_time)
    }),
    key(
        "http.longest_wait",
        Time(SECOND, DAY),
        "How long one request may wait for a person's answer.",
        |c| Place::Time(&mut c.wire.longest_wait),
    ),
    key("http.heartbeat", Time(50, HOUR), "How often a stream of events gives a sign of life.", |c| {
        Place::Time(&mut c.heartbeat)
    }),
    key("sign_in.time", Time(SECOND, 366 * DAY), "How long a browser stays signed in.", |c| {
        Place::Time(&mut c.wire.sign_in_time)
    }),
    key(
        "sign_in.attempts",
        Count(1, 1_000_000),
        "Attempts to sign in that may fail in a minute from one address.",
        |c| Place::Size(&mut c.wire.sign_in_attempts),
    ),
    key(
        "agents.calls",
        Count(1, 65_536),
        "Calls of an agent's WebSocket that are not answered yet, and calls in one batch.",
        |c| Place::Size(&mut c.wire.calls),
    ),
    key(
        "agents.untold",
        Count(1, 1_000_000),
        "What an agent's WebSocket may be told that it has not taken, before it is closed.",
        |c| Place::Size(&mut c.wire.untold),
    ),
    key("messages.websocket_bytes", Bytes(256, GIB), "Bytes of a message on a WebSocket.", |c| {
        Place::Size(&mut c.wire.websocket_bytes)
    }),
    key("messages.unix_bytes", Bytes(256, GIB), "Bytes of a message on a Unix socket.", |c| {
        Place::Size(&mut c.wire.unix_bytes)
    }),
    key("messages.stdio_bytes", Bytes(256, GIB), "Bytes of a line on standard input.", |c| {
        Place::Size(&mut c.wire.stdio_bytes)
    }),
    key(
        "messages.malformed",
        Count(1, 1_000_000),
        "So many things that are no message end a WebSocket or a connection on a Unix socket.",
        |c| Place::Size(&mut c.wire.malformed),
    ),
    key(
        "messages.ping_time",
        Time(50, HOUR),
        "How often a WebSocket is asked for a sign of life; after three in vain it is let go.",
        |c| Place::Time(&mut c.wire.ping_time),
    ),
    key(
        "messages.write_time",
        Time(50, HOUR),
        "How long the other side may take to take one message.",
        |c| Place::Time(&mut c.wire.message_time),
    ),
    key(
        "dialect.questions",
        Count(1, 65_536),
        "Questions that are remembered as told to a connection of compat; an answer to a forgotten one speaks for its present terms.",
        |c| Place::Size(&mut c.wire.dialect.questions),
    ),
    key(
        "dialect.told",
        Count(1, 1_000_000),
        "Events that are remembered as told to a connection of compat, so that a change of terms tells none of them again.",
        |c| Place::Size(&mut c.wire.dialect.told),
    ),
    key(
        "dialect.earlier",
        Count(1, 1_000),
        "Earlier subscriptions that a connection of compat keeps for the questions that they were told.",
        |c| Place::Size(&mut c.wire.dialect.earlier),
    ),
    key(
        "dialect.answers",
        Count(1, 65_536),
        "Answers to a handshake that wait for a stream of compat; who asks for more waits.",
        |c| Place::Size(&mut c.wire.dialect.answers),
    ),
    key(
        "dialect.patience",
        Time(0, HOUR),
        "How long a wish that comes before its stream of compat waits for it.",
        |c| Place::Time(&mut c.wire.dialect.patience),
    ),
    key("demo.sessions", Count(1, 10_000), "Sessions of the demo's assistant at once.", |c| {
        Place::Size(&mut c.demo.sessions)
    }),
    key(
        "demo.wishes",
        Count(1, 65_536),
        "Requests that wait until the demo's assistant looks at them.",
        |c| Place::Size(&mut c.demo.wishes),
    ),
    key(
        "demo.time",
        Time(SECOND, DAY),
        "How long a person has for an answer to the demo's assistant.",
        |c| Place::Time(&mut c.demo.time),
    ),
    key("hub.sessions", Count(1, 10_000_000), "Open sessions.", |c| Place::Size(&mut c.hub.sessions)),
    key("hub.subscriptions", Count(1, 10_000_000), "Open subscriptions.", |c| {
        Place::Size(&mut c.hub.subscriptions)
    }),
    key(
        "hub.subscriptions_per_principal",
        Count(1, 10_000_000),
        "Open subscriptions of one token; with open only the number in all counts.",
        |c| Place::Size(&mut c.hub.subscriptions_per_principal),
    ),
    key(
        "hub.criticals_per_minute",
        Count(1, 1_000_000),
        "Critical events of one agent for one person in a minute, beside its questions.",
        |c| Place::Size(&mut c.hub.criticals_per_minute),
    ),
    key(
        "hub.questions_per_minute",
        Count(1, 1_000_000),
        "Questions of one agent to one person in a minute.",
        |c| Place::Size(&mut c.hub.questions_per_minute),
    ),
    key("hub.waits_of_principal", Count(1, 1_000_000), "Waits for an answer that one token may have.", |c| {
        Place::Size(&mut c.hub.waits_of_principal)
    }),
    key("hub.followers", Count(1, 65_536), "WebSockets of agents that follow one session.", |c| {
        Place::Size(&mut c.hub.followers)
    }),
    key("hub.events_in_request", Count(1, 100_000), "Events in one request.", |c| {
        Place::Size(&mut c.hub.events_in_request)
    }),
    key(
        "hub.open_in_session",
        Count(1, 65_536),
        "Tools, outputs and questions that are open in one session, each.",
        |c| Place::Size(&mut c.hub.open_in_session),
    ),
    key("hub.lease", Time(100, 7 * DAY), "How long an agent counts as there without a sign of life.", |c| {
        Place::Millis(&mut c.hub.lease)
    }),
    key(
        "hub.attach_window",
        Time(0, DAY),
        "How long a subscription waits for its first connection; with 0 it has none but on wires that listen at once.",
        |c| Place::Millis(&mut c.hub.attach_window),
    ),
    key("hub.resume_window", Time(0, DAY), "How long a subscription outlives its connection.", |c| {
        Place::Millis(&mut c.hub.resume_window)
    }),
    key("hub.replay", Count(0, 1_000_000), "Events replayed to a listener that returns.", |c| {
        Place::Size(&mut c.hub.replay)
    }),
    key("hub.requests_in_turn", Count(1, 65_536), "Requests that are written to the disk together.", |c| {
        Place::Size(&mut c.hub.requests_in_turn)
    }),
    key(
        "hub.longest_sleep",
        Time(10, MINUTE),
        "The clock is looked at so often at least, so that one that jumps keeps nobody waiting.",
        |c| Place::Millis(&mut c.hub.longest_sleep),
    ),
    key("questions.open_in_session", Count(1, 65_536), "Open questions of one session.", |c| {
        Place::Size(&mut c.hub.questions.open_in_session)
    }),
    key("questions.open_of_agent", Count(1, 65_536), "Open questions of one agent.", |c| {
        Place::Size(&mut c.hub.questions.open_of_agent)
    }),
    key("questions.open_in_all", Count(1, 10_000_000), "Open questions in all.", |c| {
        Place::Size(&mut c.hub.questions.open_in_all)
    }),
    key(
        "questions.resolved_in_session",
        Count(1, 65_536),
        "Resolved questions that a session keeps whole; no call can be made on an older one.",
        |c| Place::Size(&mut c.hub.questions.resolved_in_session),
    ),
    key(
        "shape.text_bytes",
        Bytes(64, 16_384),
        "Bytes of text that are held of one output, waiting for the end of a sentence.",
        |c| Place::Size(&mut c.hub.shape.text),
    ),
    key("shape.outputs", Count(1, 65_536), "Outputs of which text is held for a listener.", |c| {
        Place::Size(&mut c.hub.shape.outputs)
    }),
    key("shape.events", Count(1, 1_000_000), "Events that are held for a listener's rate and pace.", |c| {
        Place::Size(&mut c.hub.shape.events)
    }),
    key("lanes.frames", Count(1, 10_000_000), "Frames that a listener may be behind.", |c| {
        Place::Size(&mut c.fanout.lanes.frames)
    }),
    key(
        "lanes.merge",
        Count(1, 10_000_000),
        "Frames that a listener may be behind before what waits for it is joined.",
        |c| Place::Size(&mut c.fanout.lanes.merge),
    ),
    key(
        "lanes.burst",
        Time(0, HOUR),
        "How long a listener may be so far behind before what waits for it is joined.",
        |c| Place::Time(&mut c.fanout.burst),
    ),
    key(
        "lanes.unsent_bytes",
        Bytes(1, GIB),
        "Bytes of a stream that the system takes beyond what it can send at once (Linux).",
        |c| Place::Size(&mut c.wire.unsent_bytes),
    ),
    key("lanes.bytes", Bytes(1024, 64 * GIB), "Bytes that a listener may be behind.", |c| {
        Place::Size(&mut c.fanout.lanes.bytes)
    }),
    key(
        "lanes.in_hand",
        Bytes(1, GIB),
        "Bytes taken out of a listener's queue before its socket has them; what is critical waits for no more.",
        |c| Place::Size(&mut c.fanout.in_hand),
    ),
    key(
        "journal.most_bytes",
        Bytes(256 * 1024, 1 << 50),
        "How large the journal's file may get; beyond that nothing more is taken.",
        |c| Place::MaybeSize(&mut c.journal.most_bytes),
    ),
    key(
        "retention.events",
        Time(SECOND, 36_500 * DAY),
        "How old events of ended sessions may get, and the record of refused attempts.",
        |c| Place::MaybeMillis(&mut c.hub.retention.events),
    ),
    key(
        "retention.decisions",
        Time(SECOND, 36_500 * DAY),
        "How old decisions and their receipts may get once their session has ended.",
        |c| Place::MaybeMillis(&mut c.hub.retention.decisions),
    ),
    key("retention.keys", Time(SECOND, 36_500 * DAY), "How old idempotency keys may get.", |c| {
        Place::MaybeMillis(&mut c.hub.retention.keys)
    }),
    key(
        "retention.bytes",
        Bytes(1024, 1 << 50),
        "How much the journal keeps; beyond that the oldest events of ended sessions go.",
        |c| Place::MaybeSize(&mut c.hub.retention.bytes),
    ),
    key(
        "retention.step",
        Count(1, 100_000),
        "How many rows of a kind are looked at in one step, for which everybody else waits.",
        |c| Place::Size(&mut c.hub.retention.step),
    ),
    key("retention.every", Time(100, DAY), "How often is looked for what may be forgotten.", |c| {
        Place::Millis(&mut c.hub.trim_every)
    }),
];
