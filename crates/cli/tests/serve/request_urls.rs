//! Request URLs: unusual paths; unknown, repeated and conflicting parameters; unknown and foreign ids; and tokens,
//! which do not belong in a URL.

use testing::cli::create_token;
use testing::http::TestClient;
use testing::hub::HubProcess;
use testing::messages::REPLY_CAPABILITIES;
use testing::messages::{subscription_close, subscription_renegotiate};

#[test]
fn unusual_paths_reach_no_endpoint() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let session = client.start_session();
    let host = &hub.address;
    for path in [
        "/healthz/",
        "//healthz",
        "/./healthz",
        "/x/../healthz",
        "/healthz%00",
        "/healthz%2f",
        "/%68ealthz",
        "/HEALTHZ",
        "/healthz;x=1",
        "/healthz\\",
        "/.well-known/../healthz",
        "/%2e%2e/healthz",
        "/..%2fhealthz",
        "/.well-known%2faaep-manifest.json",
        "/aaep%2fv1%2fevents",
        "/aaep/v1/%2e%2e/v1/events",
        "/%2fetc%2fpasswd",
        "/../../etc/passwd",
    ] {
        let response = client.get(path);
        assert_eq!(response.status, 404, "{path}: {response:?}");
    }
    // An id is compared, not resolved as a path.
    for id in [
        "..",
        ".",
        "%2e%2e",
        "",
        &format!("{session}%00"),
        &format!("x%2f..%2f{session}"),
        &session.to_uppercase(),
    ] {
        let response = client.post(&format!("/agent/v1/sessions/{id}/output"), "x");
        assert_eq!(response.status, 404, "{id}: {response:?}");
    }
    let traversal = client.post(&format!("/agent/v1/sessions/x/../{session}/output"), "x");
    assert!(matches!(traversal.status, 404 | 405), "{traversal:?}");
    for target in
        [format!("http://{host}/healthz"), "*".into(), host.clone(), "healthz".into(), "/healthz#x".into()]
    {
        for method in ["GET", "CONNECT", "OPTIONS"] {
            let response = client.send_raw(
                format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes(),
            );
            assert!(response.starts_with("HTTP/1.1 400 "), "{method} {target}: {response:.200}");
        }
    }
    for target in ["/health\0z", "/health z", "/health\u{7f}z", "/h\u{e9}althz"] {
        let response = client.send_raw(
            format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes(),
        );
        let status = response.get(9..12).unwrap_or_default().to_owned();
        assert!(["400", "404"].contains(&&*status), "{target:?}: {response:.200}");
    }
}

#[test]
fn unknown_repeated_and_conflicting_parameters_are_refused() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let _stream = client.open_event_stream(&subscription, None);
    let session = client.start_session();
    let token = client.ask_confirmation(&session);
    let replies = format!("/agent/v1/sessions/{session}/replies/{token}");
    for query in [
        "wait=1&wait=1",
        "wait=1&wait=2",
        "wait=1&Wait=1",
        "wait=-1",
        "wait=1.5",
        "wait=soon",
        "wait=",
        "wait",
        "wait=99999999999999999999",
        "wait=%",
        "wait=%ff",
        "seconds=1",
        "wait=0&decision=accept",
        "wait[]=0",
        "%77ait=0&wait=0",
    ] {
        let response = client.get(&format!("{replies}?{query}"));
        assert_eq!(response.status, 400, "{query}: {response:?}");
        assert!(response.json_str("title").ends_with('.'), "{response:?}");
    }
    assert_eq!(client.get(&replies).json_str("status"), "pending");
    let output = format!("/agent/v1/sessions/{session}/output");
    for query in
        ["complete=true&complete=false", "complete=yes", "complete", "output_id=a&output_id=b", "outputid=a"]
    {
        assert_eq!(client.post(&format!("{output}?{query}"), "x").status, 400, "{query}");
    }
    for (path, body) in [
        ("/aaep/v1/subscriptions", "{}".to_owned()),
        ("/aaep/v1/replies", "{}".to_owned()),
        ("/agent/v1/sessions", "{}".to_owned()),
        (&*format!("/agent/v1/sessions/{session}/events"), "{}".to_owned()),
        (&*format!("/agent/v1/sessions/{session}/confirmations"), "{}".to_owned()),
    ] {
        assert_eq!(client.post(&format!("{path}?x=1"), &body).status, 400, "{path}");
    }
    for path in ["/healthz", "/.well-known/aaep-manifest.json"] {
        assert_eq!(client.get(&format!("{path}?x=1")).status, 400, "{path}");
        assert_eq!(client.get(path).status, 200);
    }
    for query in [
        format!("subscription_id={subscription}&subscription_id={subscription}"),
        format!("subscription_id={subscription}&last_event_id=a&last_event_id=b"),
        format!("subscription_id={subscription}&Subscription_id=sub_2"),
        "last_event_id=a".to_owned(),
    ] {
        assert_eq!(client.get(&format!("/aaep/v1/events?{query}")).status, 400, "{query}");
    }
}

#[test]
fn unknown_and_foreign_ids_get_identical_responses() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens").to_str().unwrap().to_owned();
    let token_for = |role: &str, name: &str| {
        let agent_args = ["--agent-id", name];
        create_token(
            &file,
            &[&["--role", role, "--name", name][..], if role == "agent" { &agent_args } else { &[] }]
                .concat(),
        )
    };
    let [bank, shop, ada, eve] =
        [("agent", "bank"), ("agent", "shop"), ("listener", "ada"), ("listener", "eve")]
            .map(|(role, name)| token_for(role, name));
    let hub = HubProcess::start(&["--memory", "--listen", "127.0.0.1:0", "--tokens", &file]);
    let [bank, shop, ada, eve] = [bank, shop, ada, eve].map(|token| hub.client().with_bearer(&token));
    let subscription = ada.subscribe(REPLY_CAPABILITIES);
    let _stream = ada.open_event_stream(&subscription, None);
    let session = bank.start_session();
    let token = bank.ask_confirmation(&session);
    let own_session = shop.start_session();
    let unknown_session = own_session.replace(|character: char| character.is_ascii_digit(), "0");
    let (unknown, unknown_subscription) = (format!("rpl_{:032}", 0), format!("sub_{:032}", 0));
    let assert_same_response =
        |client: &TestClient, method: &str, foreign: (&str, &str), unknown: (&str, &str)| {
            let [foreign, unknown] = [foreign, unknown].map(|(path, body)| client.send(method, path, body));
            assert_eq!(foreign.status, 404, "{foreign:?}");
            assert_eq!((foreign.head, foreign.body), (unknown.head, unknown.body));
        };
    let state = r#"{"type":"aaep:agent.state.changed","to_state":"thinking"}"#;
    for (rest, body) in [
        ("events", state),
        ("events", "not JSON"),
        ("output", "x"),
        ("confirmations", testing::messages::CONFIRMATION_BODY),
        ("confirmations", "{"),
        ("clarifications", "{}"),
        ("invitations", r#"{"producer":"eve"}"#),
        ("join", r#"{"invitation":"inv_1"}"#),
    ] {
        let [foreign, unknown] =
            [&session, &unknown_session].map(|id| format!("/agent/v1/sessions/{id}/{rest}"));
        assert_same_response(&shop, "POST", (&foreign, body), (&unknown, body));
    }
    let reply_path = |session: &str, token: &str| format!("/agent/v1/sessions/{session}/replies/{token}");
    for (foreign, unknown) in [
        (reply_path(&session, &token), reply_path(&unknown_session, &unknown)),
        (reply_path(&session, &unknown), reply_path(&unknown_session, &unknown)),
        (reply_path(&own_session, &token), reply_path(&own_session, &unknown)),
        (reply_path(&session, "x"), reply_path(&unknown_session, "x")),
    ] {
        for method in ["GET", "DELETE"] {
            assert_same_response(&shop, method, (&foreign, ""), (&unknown, ""));
        }
    }
    let events_path = |id: &str| format!("/aaep/v1/events?subscription_id={id}");
    assert_same_response(
        &eve,
        "GET",
        (&events_path(&subscription), ""),
        (&events_path(&unknown_subscription), ""),
    );
    for message in [subscription_close, |id: &str| subscription_renegotiate(id, "{}")] {
        let path = "/aaep/v1/replies";
        assert_same_response(
            &eve,
            "POST",
            (path, &message(&subscription)),
            (path, &message(&unknown_subscription)),
        );
    }
    assert_eq!(bank.get(&reply_path(&session, &token)).json_str("status"), "pending");
}

#[test]
fn a_token_in_a_url_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens").to_str().unwrap().to_owned();
    let ada = create_token(&file, &["--role", "listener", "--name", "ada"]);
    let hub = HubProcess::start(&["--memory", "--listen", "127.0.0.1:0", "--tokens", &file]);
    let (anonymous, authenticated) = (hub.client(), hub.client().with_bearer(&ada));
    let subscription = authenticated.subscribe(REPLY_CAPABILITIES);
    let events = format!("/aaep/v1/events?subscription_id={subscription}");
    for path in [
        format!("{events}&token={ada}"),
        format!("{events}&access_token={ada}"),
        format!("/healthz?token={ada}"),
        format!("/.well-known/aaep-manifest.json?access_token={ada}"),
        format!("/nowhere?token={ada}"),
    ] {
        for client in [&anonymous, &authenticated] {
            let response = client.get(&path);
            assert_eq!(response.status, 400, "{path}: {response:?}");
            assert!(response.json_str("title").contains("Do not put a token in the URL"), "{response:?}");
            assert!(!response.body.contains(&ada), "the response must not repeat the token");
        }
    }
    for path in [
        format!("{events}&%74oken={ada}"),
        format!("{events}&bearer={ada}"),
        format!("{events}&authorization=Bearer+{ada}"),
    ] {
        assert_eq!(anonymous.get(&path).status, 401, "{path}");
        assert_eq!(authenticated.get(&path).status, 400, "{path}");
    }
    assert_eq!(anonymous.get(&format!("/{ada}")).status, 401);
    let host = hub.address.replace("127.0.0.1", &format!("{ada}@127.0.0.1"));
    assert_eq!(anonymous.with_header(&format!("Host: {host}")).get(&events).status, 421);
}
