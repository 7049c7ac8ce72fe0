//! What whoever runs the hub sees: metrics, the log, health. That none of it tells what people say is in
//! `private`.

mod private;

use std::collections::{BTreeMap, BTreeSet};

use testing::cli::token;
use testing::http::Client;
use testing::hub::Hub;
use testing::messages::CAN_REPLY;
use testing::messages::FROM_THE_FUTURE;

/// The samples of a page by name and labels.
pub(crate) fn metrics(client: &Client) -> BTreeMap<String, f64> {
    let page = client.get("/metrics");
    assert_eq!(page.status, 200, "{page:?}");
    assert!(page.head.contains("Content-Type: text/plain; version=0.0.4; charset=utf-8"), "{}", page.head);
    let samples = page.body.lines().filter(|line| !line.starts_with('#'));
    samples
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').unwrap();
            (name.to_owned(), value.parse().unwrap_or_else(|_| panic!("{line}")))
        })
        .collect()
}

fn starts(arguments: &[&str]) -> Hub {
    Hub::start(&[&["--memory", "--open", "--listen", "127.0.0.1:0"], arguments].concat())
}

#[test]
fn metrics_count_what_happened() {
    let hub = Hub::open();
    let client = hub.client();
    let subscription = client.subscribe(CAN_REPLY);
    let mut ear = client.listen(&subscription, None);
    let session = client.start();
    assert_eq!(ear.next_type(), "session.started");
    let path = |rest: &str| format!("/agent/v1/sessions/{session}/{rest}");
    let broken =
        r#"{"type":"aaep:agent.tool.completed","tool":"none","status":"success","summary_normal":"x"}"#;
    assert_eq!(client.post(&path("events"), broken).status, 422);
    let token = client.ask(&session);
    let open = metrics(&client);
    assert_eq!((open["sayso_questions_open"], open["sayso_sessions_open"]), (1.0, 1.0));
    for (to, decision) in
        [("rt_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "accept"), (&*token, "accept"), (&*token, "reject")]
    {
        assert_eq!(client.reply(&subscription, to, decision).status, 204);
    }
    assert_eq!(client.post("/aaep/v1/subscriptions", FROM_THE_FUTURE).status, 409);
    let resolved = client.get(&path(&format!("replies/{token}?wait=10")));
    assert_eq!(resolved.text("decision"), "accept");
    let done = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
    assert_eq!(client.post(&path("events"), done).status, 200);
    while ear.next_type() != "session.completed" {}

    let seen = metrics(&client);
    for (name, value) in [
        ("sayso_questions_asked_total", 1.0),
        ("sayso_questions_open", 0.0),
        (r#"sayso_questions_resolved_total{by="reply",decision="accept"}"#, 1.0),
        (r#"sayso_replies_total{verdict="taken"}"#, 1.0),
        ("sayso_sessions_started_total", 1.0),
        ("sayso_sessions_ended_total", 1.0),
        ("sayso_sessions_open", 0.0),
        ("sayso_subscriptions_open", 1.0),
        (r#"sayso_listeners{wire="sse"}"#, 1.0),
        (r#"sayso_listeners{wire="websocket"}"#, 0.0),
        ("sayso_events_published_total", 5.0),
        (r#"sayso_http_requests_total{route="/agent/v1/sessions/{id}/events",status="4xx"}"#, 1.0),
        (r#"sayso_http_requests_total{route="/agent/v1/sessions/{id}/events",status="2xx"}"#, 1.0),
        ("sayso_storage_good", 1.0),
        ("sayso_commit_failures_total", 0.0),
    ] {
        assert_eq!(seen.get(name), Some(&value), "{name}: {seen:#?}");
    }
    let replies: f64 =
        seen.iter().filter(|(name, _)| name.starts_with("sayso_replies_total")).map(|(_, n)| n).sum();
    assert!((replies - 3.0).abs() < 0.5, "two that were not taken are there too: {seen:#?}");
    for beginning in ["sayso_events_refused_total{rule=\"AAEP-", "sayso_subscriptions_rejected_total{reason="]
    {
        assert!(seen.keys().any(|name| name.starts_with(beginning)), "{beginning}: {seen:#?}");
    }
    // What was just heard is counted after it was sent.
    while metrics(&client)["sayso_frames_sent_total"] < 5.0 {}
    assert!(metrics(&client)["sayso_bytes_sent_total"] > 1000.0, "{seen:#?}");
    assert!(seen["sayso_commit_seconds_count"] >= 5.0 && seen["process_open_fds"] > 5.0);
    assert!(
        (seen["sayso_commit_seconds_count"] - seen[r#"sayso_commit_entries_bucket{le="+Inf"}"#]).abs() < 0.5
    );
}

#[test]
fn a_listener_that_returns_is_counted_and_one_that_left_is_not() {
    let hub = Hub::open();
    let client = hub.client();
    let subscription = client.subscribe(CAN_REPLY);
    let mut ear = client.listen(&subscription, None);
    client.start();
    let (_, id, _) = ear.next();
    drop(ear);
    hub.logs("listener.left");
    assert!(metrics(&client)[r#"sayso_listeners{wire="sse"}"#] < 0.5);
    drop(client.listen(&subscription, Some(&id)));
    hub.logs("listener.joined");
    drop(client.listen(&subscription, Some("evt_unknown")));
    assert!(hub.logs("listener.gap").contains(" warn "));
    let seen = metrics(&client);
    assert_eq!(
        (seen[r#"sayso_resumes_total{outcome="complete"}"#], seen[r#"sayso_resumes_total{outcome="gap"}"#]),
        (1.0, 1.0)
    );
}

#[test]
fn metrics_are_for_the_one_who_runs_the_hub() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens").to_str().unwrap().to_owned();
    let roles = ["agent", "listener", "observer", "admin"];
    let tokens = roles.map(|role| {
        let agent: &[&str] = if role == "agent" { &["--agent-id", "bank"] } else { &[] };
        token(&file, &[&["--role", role, "--name", role], agent].concat())
    });
    let hub = Hub::start(&["--memory", "--listen", "127.0.0.1:0", "--tokens", &file]);
    let nobody = hub.client();
    assert_eq!(nobody.get("/metrics").status, 401);
    assert_eq!(nobody.bearer("sayso_guess").get("/metrics").status, 401);
    let [agent, listener, observer, admin] = tokens.map(|token| nobody.bearer(&token));
    for other in [agent, listener, observer] {
        assert_eq!(other.get("/metrics").status, 403);
    }
    assert_eq!(metrics(&admin).get("sayso_logins_refused_total"), Some(&2.0));
    assert_eq!(admin.post("/metrics", "").status, 405);
    assert_eq!(nobody.get("/healthz").body, "good\n", "that is for everybody");
}

#[test]
fn open_metrics_are_given_where_they_are_accepted() {
    let hub = Hub::open();
    let page = hub.client().with("Accept: application/openmetrics-text; version=1.0.0").get("/metrics");
    assert!(page.head.contains("application/openmetrics-text; version=1.0.0"), "{}", page.head);
    assert!(page.body.contains("# TYPE sayso_turns counter\n") && page.body.ends_with("# EOF\n"));
}

#[test]
fn the_list_of_metrics_and_of_lines_in_the_document_is_the_real_one() {
    let document =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations.md")).unwrap();
    let section = |title: &str| {
        let (_, rest) =
            document.split_once(&format!("\n## {title}\n")).unwrap_or_else(|| panic!("no {title}"));
        let section = rest.split("\n## ").next().unwrap();
        let first = |line: &str| Some(line.strip_prefix("| `")?.split('`').next()?.to_owned());
        section.lines().filter_map(first).collect::<BTreeSet<String>>()
    };
    let hub = Hub::open();
    let page = hub.client().get("/metrics").body;
    let names = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    assert_eq!(section("Metrics"), names.map(str::to_owned).collect());
    let kinds = wire::observe::record::KINDS.iter().chain([&wire::observe::record::SAID]);
    assert_eq!(section("The log"), kinds.map(|kind| (*kind).to_owned()).collect());
}

#[test]
fn the_log_tells_what_happens_by_ids() {
    let hub = starts(&["--log-format", "json"]);
    let client = hub.client();
    let subscription = client.subscribe(CAN_REPLY);
    let _ear = client.listen(&subscription, None);
    let session = client.start();
    let token = client.ask(&session);
    client.reply(&subscription, "rt_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "accept");
    client.reply(&subscription, &token, "reject");
    let done = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
    client.post(&format!("/agent/v1/sessions/{session}/events"), done);
    client.post("/aaep/v1/subscriptions", FROM_THE_FUTURE);
    let lines: Vec<serde_json::Value> = hub
        .stop_and_read_log()
        .iter()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
        .collect();
    let of = |kind: &str| {
        lines.iter().find(|line| line["kind"] == kind).unwrap_or_else(|| panic!("no {kind}: {lines:#?}"))
    };
    assert_eq!(
        (&of("started")["version"], &of("started")["data"]),
        (&env!("CARGO_PKG_VERSION").into(), &"memory".into())
    );
    assert_eq!(of("session.started")["session"], session);
    assert_eq!(of("session.ended")["session"], session);
    assert_eq!(of("question.asked")["question"], of("question.resolved")["question"]);
    assert_eq!(
        (&of("question.resolved")["by"], &of("reply.refused")["level"]),
        (&"reply".into(), &"warn".into())
    );
    assert_eq!(of("subscription.rejected")["reason"], "version_unsupported");
    assert_eq!(of("listener.joined")["listeners"], "1");
    let secrets = [token.as_str(), subscription.as_str(), "\"reject\"", "\"decision\""];
    for line in &lines {
        let line = line.to_string();
        assert!(!secrets.iter().any(|secret| line.contains(secret)), "not even how it was answered: {line}");
    }
}

#[test]
fn a_flood_does_not_fill_the_log() {
    let hub = Hub::start(&["--memory", "--listen", "127.0.0.1:0"]);
    // All at once: what comes slowly is no flood.
    let request = |more: &str| format!("GET /aaep/v1/events HTTP/1.1\r\nHost: {}\r\n{more}\r\n", hub.address);
    let flood = request("").repeat(499) + &request("Connection: close\r\n");
    assert_eq!(hub.client().raw(flood.as_bytes()).matches("HTTP/1.1 401 ").count(), 500);
    let lines = hub.stop_and_read_log();
    let refused = lines.iter().filter(|line| line.contains(" login.refused ")).count();
    let left_out: usize = lines
        .iter()
        .filter_map(|line| line.split_once("log.left_out of=login.refused lines=")?.1.parse::<usize>().ok())
        .sum();
    assert_eq!(refused + left_out, 500, "all are there or counted");
    assert!(refused < 500, "and not all are there");
}

#[test]
fn bad_arguments_are_refused() {
    for arguments in [["--log-level", "loud"], ["--log-format", "xml"]] {
        let run = std::process::Command::new(env!("CARGO_BIN_EXE_sayso"))
            .args(["serve", "--memory", "--open", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .output()
            .unwrap();
        assert_eq!(run.status.code(), Some(2), "{arguments:?}");
    }
}

/// A file-size limit is the nearest thing to a full disk that needs no rights.
#[cfg(target_os = "linux")]
#[test]
fn a_hub_that_cannot_store_says_so_until_it_can() {
    let limit = |hub: &Hub, bytes: &str| {
        let limited = std::process::Command::new("prlimit")
            .args(["--pid", &hub.id(), &format!("--fsize={bytes}:")])
            .status();
        assert!(limited.unwrap().success());
    };
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::start_as(
        std::process::Command::new("sh")
            .args(["-c", r#"trap "" XFSZ; exec "$0" serve "$@""#, env!("CARGO_BIN_EXE_sayso")])
            .args(["--open", "--listen", "127.0.0.1:0", "--data", folder.path().to_str().unwrap()]),
    );
    let client = hub.client();
    client.start();
    assert_eq!(client.get("/healthz?ready").body, "good\n");
    limit(&hub, "1");
    let started = r#"{"summary_normal":"x","localization_hints":{"primary_language":"en"}}"#;
    assert_eq!(client.post("/agent/v1/sessions", started).status, 503);
    assert!(hub.logs("storage.failed").contains(" error "));
    let sick = client.get("/healthz?ready");
    assert_eq!(sick.status, 503);
    assert!(sick.text("title").contains("cannot be written"), "{sick:?}");
    assert_eq!(client.get("/healthz").body, "good\n", "it is alive all the same");
    let seen = metrics(&client);
    assert!(seen["sayso_storage_good"] < 0.5 && seen["sayso_commit_failures_total"] > 0.5);
    assert!(seen["sayso_last_commit_failure_timestamp_seconds"] > 1e9);
    assert!(seen["sayso_journal_bytes"] > 0.5);
    limit(&hub, "unlimited");
    // Nobody asks for anything: it finds out by itself.
    hub.logs("storage.good");
    assert_eq!(client.get("/healthz?ready").status, 200);
    client.start();
}
