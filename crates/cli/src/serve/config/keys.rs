//! The table of all configuration keys.

use super::Config;
use super::value::{DAY, FieldRef, GIB, HOUR, MIB, MINUTE, SECOND, ValueKind};

/// A configuration key: its name, the values it accepts, its description, and the field that holds it.
pub(super) struct ConfigKey {
    /// `section.name`, or `name` without a section.
    pub(super) name: &'static str,
    pub(super) kind: ValueKind,
    pub(super) description: &'static str,
    pub(super) field: for<'c> fn(&'c mut Config) -> FieldRef<'c>,
}

impl ConfigKey {
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.name == name)
    }

    /// Returns the name of the flag: `hub.lease` is set by `--hub-lease`.
    pub(super) fn flag(&self) -> String {
        self.name.replace(['.', '_'], "-")
    }

    /// Returns the name of the environment variable: `hub.lease` is set by `SAYSO_HUB_LEASE`.
    pub(super) fn variable(&self) -> String {
        format!("SAYSO_{}", self.name.replace('.', "_").to_ascii_uppercase())
    }

    /// Returns whether the key is a numeric limit.
    pub(super) fn is_limit(&self) -> bool {
        matches!(self.kind, ValueKind::Count(..) | ValueKind::Bytes(..) | ValueKind::Time(..))
    }
}

use ValueKind::{Address, Bytes, Count, Database, Flag, Language, List, Name, Path, Time};

/// Declares the table: each key with its accepted values, the field that holds it, and its description.
macro_rules! keys {
    ($($name:literal: $kind:expr => $variant:ident($($field:ident).+), $description:literal;)*) => {
        pub(super) static KEYS: &[ConfigKey] = &[$(
            ConfigKey { name: $name, kind: $kind, description: $description, field: |config| FieldRef::$variant(&mut config.$($field).+) },
        )*];
    };
}

keys! {
    "listen": Address => Address(listen),
        "Address to listen on; port 0 picks a free port.";
    "data": Path => Path(data),
        "Data folder: journal, keys and tokens.";
    "memory": Flag => Flag(memory),
        "Keep everything in memory; all data is lost when the hub stops.";
    "journal": Database => Database(database),
        "Postgres database for the journal, such as postgres://user@host/database, instead of a file in the data folder. The password can also be in PGPASSWORD or in the file that PGPASSFILE names.";
    "journal_replicas": Count(0, 16) => Size(database_replicas),
        "Number of standbys that must confirm every commit to the Postgres journal. A server that does not wait for that many is refused.";
    "journal_lease": Time(SECOND, HOUR) => Time(database_lease),
        "How long the lease on the Postgres journal lasts after its hub was killed, with or without a cluster.";
    "journal_connections": Count(1, 256) => Size(database_connections),
        "Maximum number of connections to the database that the journals of all shards share. A hub uses one more for its leases, and in a cluster another one for the tokens.";
    "journal_statement_timeout": Time(100, HOUR) => Time(database_statement_timeout),
        "How long one statement may take in the database. The requests that wait for it then get an error.";
    "cluster": Flag => Flag(cluster),
        "Run as a node of a cluster: the nodes share the Postgres journal and the tokens in it, each serves agents and listeners and runs a part of the shards, and the others take over its shards when it fails. Needs a build with the feature postgres.";
    "cluster_node": Name => OptionalName(cluster_node),
        "Name of this node, which is unique in the cluster; by default the name of the machine.";
    "cluster_listen": Address => OptionalAddress(cluster_listen),
        "Address on which the other nodes of the cluster reach this one; port 0 picks a free port. By default a free port on loopback, if the hub listens on loopback.";
    "cluster_address": Name => OptionalName(cluster_address),
        "Host and port at which the other nodes reach this one, if they differ from those on which it listens.";
    "cluster_drain_delay": Time(0, HOUR) => Time(drain_delay),
        "How long a node that stops still accepts connections while GET /readyz returns 503, so that a load balancer notices it. A second signal ends this time.";
    "tokens": Path => OptionalPath(tokens),
        "Token file; by default it is in the data folder.";
    "open": Flag => Flag(open),
        "Accept all agents and listeners without a token. Loopback only.";
    "personal": Flag => Flag(personal),
        "Run as the personal hub of the current user: no token is needed, only this user can connect, data is in the user's data folder, and programs find the hub by its Unix socket. Loopback only.";
    "host": List => List(host),
        "Host name and port that clients may use for the hub, in addition to the address it listens on. Can be repeated.";
    "tls_cert": Path => OptionalPath(tls_cert),
        "TLS certificate chain, a PEM file.";
    "tls_key": Path => OptionalPath(tls_key),
        "Private key of the TLS certificate, a PEM file.";
    "tls_client_ca": Path => OptionalPath(tls_client_ca),
        "Certificate authorities, a PEM file. Every client must then present a certificate that one of them signed, in addition to its token.";
    "behind_proxy": Flag => Flag(behind_proxy),
        "A proxy in front of the hub terminates TLS. Permits a public address without a certificate, and sets the Secure attribute of cookies.";
    "unix": Path => OptionalPath(unix),
        "Also accept listeners and agents on this Unix socket; \"default\" stands for the path where programs look for a hub. Only the same user can connect.";
    "grpc_listen": Address => OptionalAddress(grpc_listen),
        "Also accept listeners over gRPC on this address, with the same tokens and TLS; port 0 picks a free port. Needs a build with the feature grpc.";
    "otlp_listen": Address => OptionalAddress(otlp_listen),
        "Also receive what agents report over OpenTelemetry (OTLP over HTTP) on this address, with the same tokens and TLS; port 0 picks a free port.";
    "stdio": Flag => Flag(stdio),
        "Also accept one listener on standard input and output, as JSON-RPC; exit when the input ends.";
    "compat": Flag => Flag(compat),
        "Also serve the routes that AAEP's published packages use, without a handshake, and run the demo agent. Loopback only.";
    "demo_agent": Flag => Flag(demo_agent),
        "Run the demo agent, which answers POST /demo.";
    "threads": Count(1, 64) => Size(threads),
        "Number of threads that serve connections.";

    "http.connections": Count(1, 1_000_000) => Size(wire.connections),
        "Maximum number of open connections, including event streams and WebSockets.";
    "http.connections_per_address": Count(1, 1_000_000) => Size(wire.connections_per_address),
        "Maximum number of open connections from one address; does not apply to 127.0.0.1, ::1 and http.trusted_proxies, nor with --behind-proxy.";
    "http.reserved_connections": Count(0, 1_000_000) => Size(wire.reserved_connections),
        "Number of connections that only callers with a valid token can hold; at most half of http.connections.";
    "http.head_bytes": Bytes(256, MIB) => Size(wire.head_bytes),
        "Maximum size of a request head.";
    "http.headers": Count(1, wire::http::RequestHead::MAX_HEADERS as u64) => Size(wire.headers),
        "Maximum number of headers in a request.";
    "http.body_bytes": Bytes(256, GIB) => Size(wire.body_bytes),
        "Maximum size of a request body.";
    "http.head_timeout": Time(50, HOUR) => Time(wire.head_timeout),
        "Time limit for receiving a request head, or the first message on a WebSocket or Unix socket.";
    "http.body_timeout": Time(50, HOUR) => Time(wire.body_timeout),
        "Time limit for receiving a request body.";
    "http.response_timeout": Time(50, HOUR) => Time(wire.response_timeout),
        "Time limit for sending a response.";
    "http.idle_timeout": Time(50, DAY) => Time(wire.idle_timeout),
        "How long a connection may stay idle between requests.";
    "http.max_wait": Time(SECOND, DAY) => Time(wire.max_reply_wait),
        "How long one request may wait for a person's answer.";
    "http.heartbeat": Time(50, HOUR) => Time(heartbeat),
        "Interval between heartbeats on an event stream.";

    "http.trusted_proxies": List => List(trusted_proxies),
        "Addresses or networks, such as 10.0.0.0/8, of proxies whose X-Forwarded-For and X-Forwarded-Proto headers are trusted. Can be repeated.";

    "sign_in.lifetime": Time(SECOND, 366 * DAY) => Time(wire.sign_in_lifetime),
        "How long a browser stays signed in.";
    "sign_in.sign_outs": Count(1, 100_000) => Size(wire.sign_outs_per_token),
        "Maximum number of sign-outs remembered per token; one more signs out every browser that uses the token.";
    "sign_in.attempts": Count(1, 1_000_000) => Size(wire.failed_sign_ins_per_minute),
        "Maximum number of failed sign-in attempts per minute from one address.";

    "agents.calls_in_flight": Count(1, 65_536) => Size(wire.calls_in_flight),
        "Maximum number of unanswered calls on an agent's WebSocket, and of calls in one batch.";
    "agents.queued_notifications": Count(1, 1_000_000) => Size(wire.queued_notifications),
        "Maximum number of notifications queued for an agent's WebSocket; one more closes the connection.";

    "messages.websocket_bytes": Bytes(256, GIB) => Size(wire.websocket_bytes),
        "Maximum size of a WebSocket message.";
    "messages.unix_bytes": Bytes(256, GIB) => Size(wire.unix_bytes),
        "Maximum size of a message on a Unix socket.";
    "messages.stdio_bytes": Bytes(256, GIB) => Size(wire.stdio_bytes),
        "Maximum length of a line on standard input.";
    "messages.grpc_bytes": Bytes(256, GIB) => Size(wire.grpc_bytes),
        "Maximum size of a message over gRPC.";
    "messages.grpc_streams": Count(1, 1_000) => Size(wire.grpc_streams),
        "Maximum number of concurrent streams on one gRPC connection; further ones wait.";
    "messages.malformed": Count(1, 1_000_000) => Size(wire.malformed_messages),
        "Number of malformed messages after which a WebSocket, gRPC or Unix socket connection is closed.";
    "messages.ping_interval": Time(50, HOUR) => Time(wire.ping_interval),
        "Interval between WebSocket pings; after three unanswered pings the connection is closed.";
    "messages.write_timeout": Time(50, HOUR) => Time(wire.message_write_timeout),
        "Time limit for sending one message.";

    "compat_limits.remembered_questions": Count(1, 65_536) => Size(wire.compat.remembered_questions),
        "Maximum number of questions remembered per compat connection; an answer to an older question is treated as coming from the current subscription.";
    "compat_limits.remembered_events": Count(1, 1_000_000) => Size(wire.compat.remembered_events),
        "Maximum number of event ids remembered per compat connection, so that a new subscription does not repeat these events.";
    "compat_limits.superseded_subscriptions": Count(1, 1_000) => Size(wire.compat.superseded_subscriptions),
        "Maximum number of earlier subscriptions that a compat connection keeps because their questions are still open.";
    "compat_limits.queued_responses": Count(1, 65_536) => Size(wire.compat.queued_responses),
        "Maximum number of subscription responses queued for a compat event stream; further requests wait.";
    "compat_limits.stream_wait": Time(0, HOUR) => Time(wire.compat.stream_wait),
        "How long a compat request for a session waits until the event stream of its sender is open.";

    "otlp.body_bytes": Bytes(256, GIB) => Size(otlp.body_bytes),
        "Maximum size of an OpenTelemetry request, before and after decompression.";
    "otlp.records": Count(1, 1_000_000) => Size(otlp.records),
        "Maximum number of spans or log records in one OpenTelemetry request; further ones are rejected.";
    "otlp.messages": Count(16, 10_000_000) => Size(otlp.messages),
        "Maximum number of resources, scopes, records, attributes and values in one OpenTelemetry request.";
    "otlp.sessions": Count(1, 10_000) => Size(otlp.sessions),
        "Maximum number of open sessions of OpenTelemetry reports; one more ends a session of the token that has the most.";
    "otlp.remembered_records": Count(1, 10_000_000) => Size(otlp.remembered_records),
        "Number of spans and log records that are remembered, so that repeated ones are heard once.";
    "otlp.quiet_time": Time(SECOND, 4 * MINUTE) => Time(otlp.quiet_time),
        "How long a session of OpenTelemetry reports stays open without a new report.";

    "demo.sessions": Count(1, 10_000) => Size(demo.sessions),
        "Maximum number of concurrent sessions of the demo agent.";
    "demo.queued_requests": Count(1, 65_536) => Size(demo.queued_requests),
        "Maximum number of requests queued for the demo agent.";
    "demo.answer_timeout": Time(SECOND, DAY) => Time(demo.answer_timeout),
        "How long a person has to answer the demo agent.";

    "hub.language": Language => Language(language),
        "Language of sessions that do not state one.";
    "hub.shards": Count(1, hub::ShardMap::MAX_COUNT as u64) => Size(shards),
        "Number of shards, each with its own thread and journal. The sessions for one person are in the same shard. The number is fixed when the data folder or the database is first used; only `sayso reshard` can change that of a data folder, from 1 to more. If it is not set, a database keeps its number.";
    "hub.sessions": Count(1, 10_000_000) => Size(hub.sessions),
        "Maximum number of open sessions.";
    "hub.sessions_per_principal": Count(1, 10_000_000) => Size(hub.sessions_per_principal),
        "Maximum number of open sessions per token; with --open, per agent.";
    "hub.subscriptions": Count(1, 10_000_000) => Size(hub.subscriptions),
        "Maximum number of open subscriptions.";
    "hub.subscriptions_per_principal": Count(1, 10_000_000) => Size(hub.subscriptions_per_principal),
        "Maximum number of open subscriptions per token; with --open only the total counts.";
    "hub.criticals_per_minute": Count(1, 1_000_000) => Size(hub.criticals_per_minute),
        "Maximum number of critical events per minute from one agent to one person, not counting questions.";
    "hub.total_criticals_per_minute": Count(1, 1_000_000) => Size(hub.total_criticals_per_minute),
        "Maximum number of critical events per minute, including hand-offs but not questions, from all agents together to one person.";
    "hub.questions_per_minute": Count(1, 1_000_000) => Size(hub.questions_per_minute),
        "Maximum number of questions per minute from one agent to one person.";
    "hub.total_questions_per_minute": Count(1, 1_000_000) => Size(hub.total_questions_per_minute),
        "Maximum number of questions per minute from all agents together to one person.";
    "hub.waits_per_principal": Count(1, 1_000_000) => Size(hub.waits_per_principal),
        "Maximum number of requests per token that wait for a person's answer at the same time.";
    "hub.followers": Count(1, 65_536) => Size(hub.followers_per_session),
        "Maximum number of agent WebSockets that follow one session.";
    "hub.events_per_request": Count(1, 100_000) => Size(hub.events_per_request),
        "Maximum number of events in one request.";
    "hub.bytes_per_request": Bytes(4096, GIB) => Size(hub.bytes_per_request),
        "Maximum size of the events in one request, including the envelopes that the hub adds.";
    "hub.bytes_per_batch": Bytes(1, 64 * GIB) => Size(hub.bytes_per_turn),
        "Once the data of a batch has this size, further requests wait for the next batch.";
    "hub.bytes_per_minute": Bytes(4096, 1 << 50) => Size(hub.bytes_per_minute),
        "Maximum number of bytes that one token may publish per minute, including envelopes; with --open, that one agent may publish.";
    "hub.shared_member_characters": Count(16, 65_536) => Size(hub.shared_member_chars),
        "Maximum length of each name and value in a session's producer and localization_hints, which every event repeats.";
    "hub.shared_object_bytes": Bytes(64, MIB) => Size(hub.shared_object_bytes),
        "Maximum size of a session's producer, and of its localization_hints.";
    "hub.producers_per_session": Count(1, 1_000) => Size(hub.producers_per_session),
        "Maximum number of producers of one session, including the main one.";
    "hub.invitation_lifetime": Time(SECOND, 7 * DAY) => Millis(hub.invitation_lifetime_ms),
        "How long an invitation to a session is valid, unless the agent asks for a shorter time.";
    "hub.idempotency_key_characters": Count(16, 65_536) => Size(hub.idempotency_key_chars),
        "Maximum length of an idempotency key.";
    "hub.open_items_per_session": Count(1, 65_536) => Size(hub.open_items_per_session),
        "Maximum number of open tools, and of open outputs, in one session, each counted separately. This limit also caps questions.open_per_session.";
    "hub.lease": Time(100, 7 * DAY) => Millis(hub.lease_ms),
        "How long a session stays open after its agent was last heard from, unless the agent requests a different time when it starts the session.";
    "hub.max_lease": Time(100, 7 * DAY) => Millis(hub.max_lease_ms),
        "Maximum time that a session can ask to stay open after its agent was last heard from.";
    "hub.attach_window": Time(0, DAY) => Millis(hub.attach_window_ms),
        "How long a new subscription waits for its first connection. With 0, only WebSocket, gRPC, Unix socket and stdio work, because they subscribe on the connection itself.";
    "hub.resume_window": Time(0, DAY) => Millis(hub.resume_window_ms),
        "How long a subscription stays open after its connection is lost.";
    "hub.replay": Count(0, 1_000_000) => Size(hub.max_replay_events),
        "Maximum number of events replayed to a listener that reconnects.";
    "hub.replay_bytes": Bytes(4096, 32 * MIB) => Size(hub.max_replay_bytes),
        "Maximum size of the events that are read for such a replay. With more, the listener gets the current state instead.";
    "hub.requests_per_batch": Count(1, 65_536) => Size(hub.requests_per_turn),
        "Maximum number of requests written to disk in one batch.";
    "hub.max_sleep": Time(10, MINUTE) => Millis(hub.max_sleep_ms),
        "Maximum time between two readings of the clock, which limits how late deadlines are handled after the clock jumps.";

    "handoffs.timeout": Time(SECOND, 7 * DAY) => Millis(hub.handoffs.timeout_ms),
        "How long a hand-off waits for somebody to take over, unless the agent sets a different time.";
    "handoffs.max_timeout": Time(SECOND, 30 * DAY) => Millis(hub.handoffs.max_timeout_ms),
        "The longest time for which an agent may keep a hand-off open.";
    "handoffs.open_per_agent": Count(1, 65_536) => Size(hub.handoffs.max_open_per_agent),
        "Maximum number of open hand-offs per agent; a session has at most one.";
    "handoffs.open_total": Count(1, 1_000_000) => Size(hub.handoffs.max_open_total),
        "Maximum number of open hand-offs in total.";
    "handoffs.context_bytes": Bytes(64, MIB) => Size(hub.handoffs.max_context_bytes),
        "Maximum size of a hand-off's packaged_context.";

    "manifests.folder": Path => OptionalPath(manifests),
        "Folder with manifests of agents, as .json files or as signed .jws files, which the hub publishes.";
    "manifests.keys": Path => OptionalPath(manifest_keys),
        "Public keys (a JWK or a JWK set) of the authors whose signed manifests are verified.";
    "manifests.count": Count(0, 1_000_000) => Size(hub.manifests),
        "Maximum number of manifests that agents publish themselves; those in manifests.folder do not count.";
    "manifests.bytes": Bytes(256, aaep::manifest::MAX_SIGNED_BYTES as u64) => Size(hub.manifest_bytes),
        "Maximum size of a manifest that an agent publishes, signed or not.";

    "questions.open_per_session": Count(1, 65_536) => Size(hub.questions.max_open_per_session),
        "Maximum number of open questions per session.";
    "questions.open_per_agent": Count(1, 65_536) => Size(hub.questions.max_open_per_agent),
        "Maximum number of open questions per agent.";
    "questions.open_total": Count(1, 10_000_000) => Size(hub.questions.max_open_total),
        "Maximum number of open questions in total.";
    "questions.resolved_per_session": Count(1, 65_536) => Size(hub.questions.max_resolved_per_session),
        "Maximum number of resolved questions that a session keeps; a tool call cannot use the answer to an older one.";
    "questions.consent_lifetime": Time(SECOND, DAY) => Millis(hub.questions.max_consent_age_ms),
        "How long the agent has to start an action after a person has accepted it.";
    "questions.argument_bytes": Bytes(64, MIB) => Size(hub.arguments.max_bytes),
        "Maximum size of the arguments that listeners receive with a question; a question with larger arguments is refused.";
    "questions.argument_characters": Count(16, 1_000_000) => Size(hub.arguments.max_text_chars),
        "Maximum length of one text in the arguments of a question; a longer text is shortened, except if the risk is high or the action cannot be undone.";

    "shape.text_bytes": Bytes(64, 16_384) => Size(hub.shaping.max_text_bytes),
        "Maximum number of bytes of one output that are held back until the end of a sentence.";
    "shape.outputs": Count(1, 65_536) => Size(hub.shaping.max_held_outputs),
        "Maximum number of outputs per listener whose text is held back.";
    "shape.events": Count(1, 1_000_000) => Size(hub.shaping.max_held_events),
        "Maximum number of events held back per listener because of its max_events_per_second or pace_wpm.";

    "delivery.frames": Count(1, 10_000_000) => Size(fanout.delivery.frames),
        "Maximum number of frames queued for a listener.";
    "delivery.merge_threshold": Count(1, 10_000_000) => Size(fanout.delivery.merge_above_frames),
        "Number of queued frames above which text and progress are merged.";
    "delivery.merge_delay": Time(0, HOUR) => Time(fanout.burst_grace),
        "How long a listener may stay above delivery.merge_threshold before its frames are merged.";
    "delivery.unsent_bytes": Bytes(1, GIB) => Size(wire.unsent_bytes),
        "Maximum number of unsent bytes per stream in the buffer of the operating system (Linux only).";
    "delivery.bytes": Bytes(1024, 64 * GIB) => Size(fanout.delivery.bytes),
        "Maximum number of bytes queued for a listener.";
    "delivery.in_flight_bytes": Bytes(1, GIB) => Size(fanout.in_flight_bytes),
        "Number of bytes taken from a listener's queue ahead of writing; a critical event waits until they are written.";

    "journal.max_bytes": Bytes(256 * 1024, 1 << 50) => OptionalSize(journal.max_bytes),
        "Maximum size of the journal file; when it is reached, the hub accepts nothing more.";

    "backup.timeout": Time(50, DAY) => Time(backup_timeout),
        "How long `sayso backup` may take to copy the journal of a running hub; the write-ahead log grows during that time.";

    "retention.events": Time(SECOND, 36_500 * DAY) => OptionalMillis(hub.retention.max_event_age_ms),
        "Maximum age of events of ended sessions, and of the records of replies, accepted or refused.";
    "retention.decisions": Time(SECOND, 36_500 * DAY) => OptionalMillis(hub.retention.max_decision_age_ms),
        "Maximum age of decisions and receipts of ended sessions.";
    "retention.keys": Time(SECOND, 36_500 * DAY) => OptionalMillis(hub.retention.max_idempotency_key_age_ms),
        "Maximum age of idempotency keys.";
    "retention.keys_per_principal": Count(1, 100_000_000) => OptionalSize(hub.retention.max_idempotency_keys_per_principal),
        "Maximum number of idempotency keys per token; when there are more, the oldest are deleted.";
    "retention.bytes": Bytes(1024, 1 << 50) => OptionalSize(hub.retention.max_bytes),
        "Size of the journal above which the oldest events of ended sessions are deleted.";
    "retention.rows_per_step": Count(1, 100_000) => Size(hub.retention.max_rows_per_step),
        "Number of rows of each kind examined per deletion step; all other work waits during a step.";
    "retention.interval": Time(100, DAY) => Millis(hub.trim_interval_ms),
        "How often the hub looks for data to delete.";
}
