//! The gRPC port: who may hold a connection, what is read from callers without a token, and what floods do to others.

use testing::cli::create_token;
use testing::http::TestClient;
use testing::hub::{HubProcess, reserved_address};
use testing::messages::subscription_request;

use super::http2::{CallOutcome, GET_MANIFEST, RawHttp2, SUBSCRIBE, message_prefix};

/// A hub with a gRPC port, the listener `ada`, who hears only the agent `shop`, and the agents `shop` and `bank`.
struct GrpcHub {
    hub: HubProcess,
    /// The address of the gRPC port.
    address: String,
    ada: String,
    shop: String,
    bank: String,
    _folder: tempfile::TempDir,
}

impl GrpcHub {
    fn start(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens").to_str().unwrap().to_owned();
        let agent = |name| create_token(&file, &["--role", "agent", "--name", name, "--agent-id", name]);
        let (shop, bank) = (agent("shop"), agent("bank"));
        let ada = create_token(&file, &["--role", "listener", "--name", "ada", "--scope", "agent:shop"]);
        let address = reserved_address();
        let fixed = ["--memory", "--listen", "127.0.0.1:0", "--grpc-listen", &address, "--tokens", &file];
        let hub = HubProcess::start(&[&fixed, arguments].concat());
        Self { hub, address, ada, shop, bank, _folder: folder }
    }

    fn client(&self, token: &str) -> TestClient {
        self.hub.client().with_bearer(token)
    }

    /// Opens a connection on which `ada` is subscribed.
    fn subscribe(&self) -> RawHttp2 {
        let mut connection = RawHttp2::connect(&self.address);
        let call = connection.call(SUBSCRIBE, &[("authorization", &bearer(&self.ada))]);
        connection.send_message(call, &subscription_request("{}"));
        assert_accepted(&connection.outcome(call));
        connection
    }
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

fn assert_accepted(outcome: &CallOutcome) {
    let is_accepted =
        matches!(outcome, CallOutcome::Message(message) if message.contains("subscription.accepted"));
    assert!(is_accepted, "{outcome:?}");
}

#[test]
fn a_caller_without_a_token_cannot_make_the_hub_hold_large_messages() {
    // Without timeouts and pings, a call that the hub does not answer is noticed.
    let grpc = GrpcHub::start(&["--http-head-timeout", "10m", "--messages-ping-interval", "10m"]);
    let mut connection = RawHttp2::connect(&grpc.address);
    // The manifest needs no token. As over HTTP, a request without one may have 16 KiB.
    let call = connection.call(GET_MANIFEST, &[]);
    connection.send_data(call, &message_prefix(16 * 1024 + 1));
    assert_eq!(connection.outcome(call), CallOutcome::Refused);
    // With a token, but not for a method that does not check it.
    let authorization = bearer(&grpc.ada);
    let call = connection.call(GET_MANIFEST, &[("authorization", &authorization)]);
    connection.send_data(call, &message_prefix(16 * 1024 + 1));
    assert_eq!(connection.outcome(call), CallOutcome::Refused);
    for token in ["", "Bearer wrong"] {
        let call = connection.call(SUBSCRIBE, &[("authorization", token)]);
        connection.send_data(call, &message_prefix(16 * 1024 + 1));
        assert_eq!(connection.outcome(call), CallOutcome::Refused);
    }
    // A caller with a token may send more.
    let call = connection.call(SUBSCRIBE, &[("authorization", &authorization)]);
    let padded = format!("{}{}", " ".repeat(40_000), subscription_request("{}"));
    connection.send_message(call, &padded);
    assert_accepted(&connection.outcome(call));
}

#[test]
fn the_messages_of_a_caller_with_a_token_are_limited_too() {
    // Without timeouts and pings, a call that the hub does not answer is noticed.
    let grpc = GrpcHub::start(&["--http-head-timeout", "10m", "--messages-ping-interval", "10m"]);
    let mut listener = grpc.subscribe();
    for body in [
        message_prefix(u32::MAX),
        message_prefix((1 << 20) + (64 << 10) + 1),
        // Compressed, although the hub supports no compression.
        [&[1], &message_prefix(5)[1..], b"12345"].concat(),
        // Not a message of this service.
        [message_prefix(5), b"\x0a\xff\xff\xff\xff".to_vec()].concat(),
    ] {
        let mut connection = RawHttp2::connect(&grpc.address);
        let call = connection.call(SUBSCRIBE, &[("authorization", &bearer(&grpc.ada))]);
        connection.send_data(call, &body);
        assert_eq!(connection.outcome(call), CallOutcome::Refused);
    }
    assert!(listener.is_open());
}

#[test]
fn only_one_bearer_token_in_the_authorization_header_counts() {
    let grpc = GrpcHub::start(&[]);
    let (ada, basic) = (bearer(&grpc.ada), format!("Basic {}", grpc.ada));
    let (list, cookie) = (format!("{ada}, Bearer wrong"), format!("sayso_session={}", grpc.ada));
    let mut connection = RawHttp2::connect(&grpc.address);
    let mut outcome = |headers: &[(&str, &str)], path: &str| {
        let call = connection.call(path, headers);
        connection.send_message(call, &subscription_request("{}"));
        connection.outcome(call)
    };
    assert_accepted(&outcome(&[("authorization", &ada)], SUBSCRIBE));
    for headers in [
        [("authorization", &*ada), ("authorization", "Bearer wrong")],
        [("authorization", "Bearer wrong"), ("authorization", &ada)],
        [("authorization", &ada), ("authorization", &ada)],
        [("authorization", &list), ("x-note", "")],
        [("authorization", &basic), ("x-note", "")],
        [("authorization-bin", &ada), ("x-note", "")],
        [("cookie", &cookie), ("x-note", "")],
        [("authorization", &ada), ("origin", "https://evil.example")],
        [("authorization", &ada), ("origin", "null")],
    ] {
        assert_eq!(outcome(&headers, SUBSCRIBE), CallOutcome::Refused, "{headers:?}");
    }
    let path = format!("{SUBSCRIBE}?access_token={}", grpc.ada);
    assert_eq!(outcome(&[], &path), CallOutcome::Refused);
}

#[test]
fn a_token_gets_over_grpc_only_what_its_role_and_scope_allow() {
    let grpc = GrpcHub::start(&[]);
    let mut connection = RawHttp2::connect(&grpc.address);
    let call = connection.call(SUBSCRIBE, &[("authorization", &bearer(&grpc.bank))]);
    connection.send_message(call, &subscription_request("{}"));
    let rejected = connection.outcome(call);
    let is_denied =
        matches!(&rejected, CallOutcome::Message(message) if message.contains("authorization_denied"));
    assert!(is_denied, "{rejected:?}");

    let call = connection.call(SUBSCRIBE, &[("authorization", &bearer(&grpc.ada))]);
    connection.send_message(call, &subscription_request("{}"));
    assert_accepted(&connection.outcome(call));
    let foreign = grpc.client(&grpc.bank).start_session();
    grpc.client(&grpc.bank).ask_confirmation(&foreign);
    let own = grpc.client(&grpc.shop).start_session();
    let CallOutcome::Message(event) = connection.outcome(call) else { panic!("no event") };
    assert!(event.contains(&own) && !event.contains(&foreign), "{event}");
}

#[test]
fn one_address_cannot_take_all_grpc_connections() {
    // Without pings, a connection that the hub keeps is noticed.
    let grpc = GrpcHub::start(&[
        "--http-connections-per-address",
        "3",
        "--http-head-timeout",
        "10m",
        "--messages-ping-interval",
        "10m",
    ]);
    let connect = |own: &str, address: &str| RawHttp2::start(RawHttp2::connect_from(own, address));
    let mut held: Vec<_> = (0..3).map(|_| connect("127.0.0.2", &grpc.address)).collect();
    assert!(held.iter_mut().all(RawHttp2::is_open));
    connect("127.0.0.2", &grpc.address).wait_until_closed();
    // Connections to the HTTP port count together with these.
    connect("127.0.0.2", &grpc.hub.address).wait_until_closed();
    assert!(connect("127.0.0.3", &grpc.address).is_open());
    assert!(held.iter_mut().all(RawHttp2::is_open));
}

#[test]
fn grpc_connections_without_a_token_cannot_keep_out_or_displace_a_listener() {
    let limits =
        ["--http-connections", "20", "--http-reserved-connections", "10", "--http-head-timeout", "10m"];
    let grpc = GrpcHub::start(&limits);
    let mut listener = grpc.subscribe();
    let mut flood: Vec<_> = (0..30).map(|_| RawHttp2::connect(&grpc.address)).collect();
    for oldest in &mut flood[..20] {
        oldest.wait_until_closed();
    }
    assert!(flood[20..].iter_mut().all(RawHttp2::is_open));
    assert!(listener.is_open());
    assert!(grpc.subscribe().is_open());
    assert_eq!(grpc.hub.client().get("/healthz").status, 200);
}

#[test]
fn a_grpc_connection_without_a_call_is_closed() {
    // Without pings, only the hub's own limits close a connection.
    let grpc = GrpcHub::start(&["--http-head-timeout", "1s", "--messages-ping-interval", "10m"]);
    let ada = bearer(&grpc.ada);
    let silent = RawHttp2::connect_silently(&grpc.address);
    let idle = RawHttp2::connect(&grpc.address);
    let mut endless_headers = RawHttp2::connect(&grpc.address);
    endless_headers.call_without_end_of_headers(SUBSCRIBE, &[("authorization", &ada)]);
    let mut refused = RawHttp2::connect(&grpc.address);
    refused.call(SUBSCRIBE, &[("authorization", "Bearer wrong")]);
    let mut manifest = RawHttp2::connect(&grpc.address);
    manifest.call(GET_MANIFEST, &[]);
    for mut connection in [RawHttp2::from_silent(silent), idle, endless_headers, refused, manifest] {
        connection.wait_until_closed();
    }
    // A call with a token must send its first message in time.
    let mut connection = RawHttp2::connect(&grpc.address);
    let call = connection.call(SUBSCRIBE, &[("authorization", &ada)]);
    assert_eq!(connection.outcome(call), CallOutcome::Refused);
}

#[test]
fn a_flood_on_one_grpc_connection_ends_it_and_no_other() {
    // Without pings, a connection that the hub keeps is noticed.
    let grpc = GrpcHub::start(&["--messages-ping-interval", "10m"]);
    let ada = bearer(&grpc.ada);
    let mut listener = grpc.subscribe();
    let mut resets = RawHttp2::connect(&grpc.address);
    for _ in 0..5_000 {
        let call = resets.call(SUBSCRIBE, &[("authorization", &ada)]);
        resets.reset(call);
    }
    resets.wait_until_closed();
    let mut headers = RawHttp2::connect(&grpc.address);
    let call = headers.call_without_end_of_headers(SUBSCRIBE, &[("authorization", &ada)]);
    for number in 0..1_000 {
        headers.send_more_headers(call, &format!("x-{number}"), &"a".repeat(8_000));
    }
    headers.wait_until_closed();
    assert!(listener.is_open());
    assert!(grpc.subscribe().is_open());
}
