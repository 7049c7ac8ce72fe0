//! What stands in an address: tricks with paths, parameters that are unknown, repeated or in conflict, ids of nobody and of
//! somebody else, and tokens, which do not belong there.

use testing::cli::token;
use testing::http::Client;
use testing::hub::Hub;
use testing::messages::CAN_REPLY;
use testing::messages::{close, renegotiate};

#[test]
fn no_trick_with_a_path_leads_anywhere() {
    let hub = Hub::open();
    let client = hub.client();
    let session = client.start();
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
        let answer = client.get(path);
        assert_eq!(answer.status, 404, "{path}: {answer:?}");
    }
    // An id is compared, not resolved.
    for id in [
        "..",
        ".",
        "%2e%2e",
        "",
        &format!("{session}%00"),
        &format!("x%2f..%2f{session}"),
        &session.to_uppercase(),
    ] {
        let answer = client.post(&format!("/agent/v1/sessions/{id}/output"), "x");
        assert_eq!(answer.status, 404, "{id}: {answer:?}");
    }
    let around = client.post(&format!("/agent/v1/sessions/x/../{session}/output"), "x");
    assert!(matches!(around.status, 404 | 405), "{around:?}");
    for target in
        [format!("http://{host}/healthz"), "*".into(), host.clone(), "healthz".into(), "/healthz#x".into()]
    {
        for method in ["GET", "CONNECT", "OPTIONS"] {
            let answer = client.raw(
                format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes(),
            );
            assert!(answer.starts_with("HTTP/1.1 400 "), "{method} {target}: {answer:.200}");
        }
    }
    for target in ["/health\0z", "/health z", "/health\u{7f}z", "/h\u{e9}althz"] {
        let answer = client
            .raw(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes());
        let status = answer.get(9..12).unwrap_or_default().to_owned();
        assert!(["400", "404"].contains(&&*status), "{target:?}: {answer:.200}");
    }
}

#[test]
fn parameters_are_known_stand_once_and_mean_one_thing() {
    let hub = Hub::open();
    let client = hub.client();
    let subscription = client.subscribe(CAN_REPLY);
    let _ear = client.listen(&subscription, None);
    let session = client.start();
    let asked = client.ask(&session);
    let replies = format!("/agent/v1/sessions/{session}/replies/{asked}");
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
        let answer = client.get(&format!("{replies}?{query}"));
        assert_eq!(answer.status, 400, "{query}: {answer:?}");
        assert!(answer.text("title").ends_with('.'), "{answer:?}");
    }
    assert_eq!(client.get(&replies).text("status"), "pending");
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
fn what_is_nobodys_and_what_is_somebody_elses_are_answered_to_the_byte_alike() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens").to_str().unwrap().to_owned();
    let make = |role: &str, name: &str| {
        let agent = ["--agent-id", name];
        token(
            &file,
            &[&["--role", role, "--name", name][..], if role == "agent" { &agent } else { &[] }].concat(),
        )
    };
    let [bank, post, ada, eve] =
        [("agent", "bank"), ("agent", "post"), ("listener", "ada"), ("listener", "eve")]
            .map(|(role, name)| make(role, name));
    let hub = Hub::start(&["--memory", "--listen", "127.0.0.1:0", "--tokens", &file]);
    let [bank, post, ada, eve] = [bank, post, ada, eve].map(|token| hub.client().bearer(&token));
    let subscription = ada.subscribe(CAN_REPLY);
    let _ear = ada.listen(&subscription, None);
    let session = bank.start();
    let asked = bank.ask(&session);
    let own = post.start();
    let nobodys_session = own.replace(|letter: char| letter.is_ascii_digit(), "0");
    let (nobodys, nobodys_subscription) = (format!("rpl_{:032}", 0), format!("sub_{:032}", 0));
    let alike = |who: &Client, method: &str, theirs: (&str, &str), nobodys: (&str, &str)| {
        let [theirs, nobodys] = [theirs, nobodys].map(|(path, body)| who.send(method, path, body));
        assert_eq!(theirs.status, 404, "{theirs:?}");
        assert_eq!((theirs.head, theirs.body), (nobodys.head, nobodys.body));
    };
    let state = r#"{"type":"aaep:agent.state.changed","to_state":"thinking"}"#;
    for (rest, body) in [
        ("events", state),
        ("events", "not JSON"),
        ("output", "x"),
        ("confirmations", testing::messages::QUESTION),
        ("confirmations", "{"),
        ("clarifications", "{}"),
    ] {
        let [theirs, nobodys] =
            [&session, &nobodys_session].map(|id| format!("/agent/v1/sessions/{id}/{rest}"));
        alike(&post, "POST", (&theirs, body), (&nobodys, body));
    }
    let replies = |session: &str, token: &str| format!("/agent/v1/sessions/{session}/replies/{token}");
    let none = replies(&nobodys_session, &nobodys);
    for theirs in [
        replies(&session, &asked),
        replies(&own, &asked),
        replies(&session, &nobodys),
        replies(&own, &nobodys),
        replies(&own, "x"),
    ] {
        alike(&post, "GET", (&theirs, ""), (&none, ""));
    }
    let events = |id: &str| format!("/aaep/v1/events?subscription_id={id}");
    alike(&eve, "GET", (&events(&subscription), ""), (&events(&nobodys_subscription), ""));
    for message in [close, |id: &str| renegotiate(id, "{}")] {
        let path = "/aaep/v1/replies";
        alike(&eve, "POST", (path, &message(&subscription)), (path, &message(&nobodys_subscription)));
    }
    assert_eq!(bank.get(&replies(&session, &asked)).text("status"), "pending");
}

#[test]
fn a_token_in_an_address_opens_nothing_and_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens").to_str().unwrap().to_owned();
    let ada = token(&file, &["--role", "listener", "--name", "ada"]);
    let hub = Hub::start(&["--memory", "--listen", "127.0.0.1:0", "--tokens", &file]);
    let (nobody, known) = (hub.client(), hub.client().bearer(&ada));
    let subscription = known.subscribe(CAN_REPLY);
    let events = format!("/aaep/v1/events?subscription_id={subscription}");
    for path in [
        format!("{events}&token={ada}"),
        format!("{events}&access_token={ada}"),
        format!("/healthz?token={ada}"),
        format!("/.well-known/aaep-manifest.json?access_token={ada}"),
        format!("/nowhere?token={ada}"),
    ] {
        for client in [&nobody, &known] {
            let answer = client.get(&path);
            assert_eq!(answer.status, 400, "{path}: {answer:?}");
            assert!(answer.text("title").contains("A token in an address"), "{answer:?}");
            assert!(!answer.body.contains(&ada), "and it is not said again");
        }
    }
    for path in [
        format!("{events}&%74oken={ada}"),
        format!("{events}&bearer={ada}"),
        format!("{events}&authorization=Bearer+{ada}"),
    ] {
        assert_eq!(nobody.get(&path).status, 401, "{path}");
        assert_eq!(known.get(&path).status, 400, "{path}");
    }
    assert_eq!(nobody.get(&format!("/{ada}")).status, 401);
    let host = hub.address.replace("127.0.0.1", &format!("{ada}@127.0.0.1"));
    assert_eq!(nobody.with(&format!("Host: {host}")).get(&events).status, 421);
}
