//! Metrics, the log and health, as the operator sees them. `log_privacy` checks that they contain no user text.

mod log_privacy;

use std::collections::{BTreeMap, BTreeSet};

use testing::cli::create_token;
use testing::http::TestClient;
use testing::hub::HubProcess;
use testing::messages::REPLY_CAPABILITIES;
use testing::messages::UNSUPPORTED_VERSION_REQUEST;

/// Parses the metrics page into samples by name and labels.
pub(crate) fn metrics(client: &TestClient) -> BTreeMap<String, f64> {
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

fn start_hub(arguments: &[&str]) -> HubProcess {
    HubProcess::start(&[&["--memory", "--open", "--listen", "127.0.0.1:0"], arguments].concat())
}

#[test]
fn metrics_count_events_questions_and_requests() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let mut stream = client.open_event_stream(&subscription, None);
    let session = client.start_session();
    assert_eq!(stream.next_type(), "session.started");
    let path = |rest: &str| format!("/agent/v1/sessions/{session}/{rest}");
    let invalid =
        r#"{"type":"aaep:agent.tool.completed","tool":"none","status":"success","summary_normal":"x"}"#;
    assert_eq!(client.post(&path("events"), invalid).status, 422);
    let token = client.ask_confirmation(&session);
    let during_question = metrics(&client);
    assert_eq!((during_question["sayso_questions_open"], during_question["sayso_sessions_open"]), (1.0, 1.0));
    for (reply_token, decision) in
        [("rt_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "accept"), (&*token, "accept"), (&*token, "reject")]
    {
        assert_eq!(client.reply(&subscription, reply_token, decision).status, 204);
    }
    assert_eq!(client.post("/aaep/v1/subscriptions", UNSUPPORTED_VERSION_REQUEST).status, 409);
    let resolved = client.get(&path(&format!("replies/{token}?wait=10")));
    assert_eq!(resolved.json_str("decision"), "accept");
    let done = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
    assert_eq!(client.post(&path("events"), done).status, 200);
    while stream.next_type() != "session.completed" {}

    let samples = metrics(&client);
    for (name, value) in [
        ("sayso_questions_asked_total", 1.0),
        ("sayso_questions_open", 0.0),
        (r#"sayso_questions_resolved_total{by="reply",decision="accept"}"#, 1.0),
        (r#"sayso_replies_total{verdict="applied"}"#, 1.0),
        ("sayso_sessions_started_total", 1.0),
        ("sayso_sessions_ended_total", 1.0),
        ("sayso_sessions_open", 0.0),
        ("sayso_subscriptions_open", 1.0),
        (r#"sayso_listeners{transport="sse"}"#, 1.0),
        (r#"sayso_listeners{transport="websocket"}"#, 0.0),
        ("sayso_events_published_total", 5.0),
        (r#"sayso_http_requests_total{route="/agent/v1/sessions/{id}/events",status="4xx"}"#, 1.0),
        (r#"sayso_http_requests_total{route="/agent/v1/sessions/{id}/events",status="2xx"}"#, 1.0),
        ("sayso_storage_healthy", 1.0),
        ("sayso_commit_failures_total", 0.0),
    ] {
        assert_eq!(samples.get(name), Some(&value), "{name}: {samples:#?}");
    }
    let reply_count: f64 =
        samples.iter().filter(|(name, _)| name.starts_with("sayso_replies_total")).map(|(_, n)| n).sum();
    assert!((reply_count - 3.0).abs() < 0.5, "the two refused replies are counted too: {samples:#?}");
    for prefix in ["sayso_rule_violations_total{rule=\"AAEP-", "sayso_subscriptions_rejected_total{reason="] {
        assert!(samples.keys().any(|name| name.starts_with(prefix)), "{prefix}: {samples:#?}");
    }
    // A frame is counted only after it was sent.
    while metrics(&client)["sayso_frames_sent_total"] < 5.0 {}
    assert!(metrics(&client)["sayso_bytes_sent_total"] > 1000.0, "{samples:#?}");
    assert!(samples["sayso_commit_seconds_count"] >= 5.0 && samples["process_open_fds"] > 5.0);
    assert!(
        (samples["sayso_commit_seconds_count"] - samples[r#"sayso_commit_entries_bucket{le="+Inf"}"#]).abs()
            < 0.5
    );
}

#[test]
fn connected_and_resumed_listeners_are_counted() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let mut stream = client.open_event_stream(&subscription, None);
    client.start_session();
    let (_, id, _) = stream.next();
    drop(stream);
    hub.wait_for_log("listener.left");
    assert!(metrics(&client)[r#"sayso_listeners{transport="sse"}"#] < 0.5);
    drop(client.open_event_stream(&subscription, Some(&id)));
    hub.wait_for_log("listener.joined");
    drop(client.open_event_stream(&subscription, Some("evt_unknown")));
    assert!(hub.wait_for_log("listener.gap").contains(" warn "));
    let samples = metrics(&client);
    assert_eq!(
        (
            samples[r#"sayso_resumes_total{outcome="complete"}"#],
            samples[r#"sayso_resumes_total{outcome="gap"}"#]
        ),
        (1.0, 1.0)
    );
}

#[test]
fn metrics_are_for_the_admin_only() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens").to_str().unwrap().to_owned();
    let roles = ["agent", "listener", "observer", "admin"];
    let tokens = roles.map(|role| {
        let agent: &[&str] = if role == "agent" { &["--agent-id", "bank"] } else { &[] };
        create_token(&file, &[&["--role", role, "--name", role], agent].concat())
    });
    let hub = HubProcess::start(&["--memory", "--listen", "127.0.0.1:0", "--tokens", &file]);
    let anonymous = hub.client();
    assert_eq!(anonymous.get("/metrics").status, 401);
    assert_eq!(anonymous.with_bearer("sayso_guess").get("/metrics").status, 401);
    let [agent, listener, observer, admin] = tokens.map(|token| anonymous.with_bearer(&token));
    for other in [agent, listener, observer] {
        assert_eq!(other.get("/metrics").status, 403);
    }
    assert_eq!(metrics(&admin).get("sayso_auth_failures_total"), Some(&2.0));
    assert_eq!(admin.post("/metrics", "").status, 405);
    assert_eq!(anonymous.get("/healthz").body, "good\n", "health is public");
}

#[test]
fn open_metrics_format_is_served_on_request() {
    let hub = HubProcess::start_in_memory();
    let page =
        hub.client().with_header("Accept: application/openmetrics-text; version=1.0.0").get("/metrics");
    assert!(page.head.contains("application/openmetrics-text; version=1.0.0"), "{}", page.head);
    assert!(page.body.contains("# TYPE sayso_turns counter\n") && page.body.ends_with("# EOF\n"));
}

#[test]
fn the_documented_metrics_and_log_lines_are_complete() {
    let document =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations.md")).unwrap();
    let section = |title: &str| {
        let (_, rest) =
            document.split_once(&format!("\n## {title}\n")).unwrap_or_else(|| panic!("no {title}"));
        let section = rest.split("\n## ").next().unwrap();
        let first_column = |line: &str| Some(line.strip_prefix("| `")?.split('`').next()?.to_owned());
        section.lines().filter_map(first_column).collect::<BTreeSet<String>>()
    };
    let hub = HubProcess::start_in_memory();
    let page = hub.client().get("/metrics").body;
    let names = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    // Only the node of a cluster has these.
    let of_cluster = [
        "sayso_shard_here",
        "sayso_shard_reachable",
        "sayso_shard_epoch",
        "sayso_shard_starts_total",
        "sayso_requests_forwarded_total",
        "sayso_requests_held_total",
        "sayso_requests_waiting_for_shard",
        "sayso_nodes_connected",
    ]
    .map(str::to_owned);
    assert_eq!(section("Metrics"), names.map(str::to_owned).chain(of_cluster).collect());
    let kinds = wire::telemetry::log_record::KINDS.iter().chain([&wire::telemetry::log_record::COMMAND_KIND]);
    assert_eq!(section("The log"), kinds.map(|kind| (*kind).to_owned()).collect());
}

#[test]
fn the_log_reports_events_by_id() {
    let hub = start_hub(&["--log-format", "json"]);
    let client = hub.client();
    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let _stream = client.open_event_stream(&subscription, None);
    let session = client.start_session();
    let token = client.ask_confirmation(&session);
    client.reply(&subscription, "rt_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "accept");
    client.reply(&subscription, &token, "reject");
    let done = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
    client.post(&format!("/agent/v1/sessions/{session}/events"), done);
    client.post("/aaep/v1/subscriptions", UNSUPPORTED_VERSION_REQUEST);
    let lines: Vec<serde_json::Value> = hub
        .stop_and_collect_log()
        .iter()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
        .collect();
    let record_of = |kind: &str| {
        lines.iter().find(|line| line["kind"] == kind).unwrap_or_else(|| panic!("no {kind}: {lines:#?}"))
    };
    assert_eq!(
        (&record_of("started")["version"], &record_of("started")["data"]),
        (&env!("CARGO_PKG_VERSION").into(), &"memory".into())
    );
    assert_eq!(record_of("session.started")["session"], session);
    assert_eq!(record_of("session.ended")["session"], session);
    assert_eq!(record_of("question.asked")["question"], record_of("question.resolved")["question"]);
    assert_eq!(
        (&record_of("question.resolved")["by"], &record_of("reply.refused")["level"]),
        (&"reply".into(), &"warn".into())
    );
    assert_eq!(record_of("subscription.rejected")["reason"], "version_unsupported");
    assert_eq!(record_of("listener.joined")["listeners"], "1");
    let secrets = [token.as_str(), subscription.as_str(), "\"reject\"", "\"decision\""];
    for line in &lines {
        let line = line.to_string();
        assert!(
            !secrets.iter().any(|secret| line.contains(secret)),
            "reply tokens, subscription ids and decisions must not be logged: {line}"
        );
    }
}

#[test]
fn a_flood_does_not_fill_the_log() {
    let hub = HubProcess::start(&["--memory", "--listen", "127.0.0.1:0"]);
    // The requests are sent together, because slow requests would not be a flood.
    let request =
        |headers: &str| format!("GET /aaep/v1/events HTTP/1.1\r\nHost: {}\r\n{headers}\r\n", hub.address);
    let flood = request("").repeat(499) + &request("Connection: close\r\n");
    assert_eq!(hub.client().send_raw(flood.as_bytes()).matches("HTTP/1.1 401 ").count(), 500);
    let lines = hub.stop_and_collect_log();
    let logged = lines.iter().filter(|line| line.contains(" auth.failed ")).count();
    let dropped: usize = lines
        .iter()
        .filter_map(|line| line.split_once("log.dropped of=auth.failed lines=")?.1.parse::<usize>().ok())
        .sum();
    assert_eq!(logged + dropped, 500, "every line is logged or counted as dropped");
    assert!(logged < 500, "some lines must be dropped");
}

#[test]
fn invalid_log_arguments_are_refused() {
    for arguments in [["--log-level", "loud"], ["--log-format", "xml"]] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_sayso"))
            .args(["serve", "--memory", "--open", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}

/// Simulates a full disk with a file-size limit, which needs no privileges.
#[cfg(target_os = "linux")]
#[test]
fn a_hub_that_cannot_store_reports_it_until_it_recovers() {
    let set_file_size_limit = |hub: &HubProcess, bytes: &str| {
        let limited = std::process::Command::new("prlimit")
            .args(["--pid", &hub.pid(), &format!("--fsize={bytes}:")])
            .status();
        assert!(limited.unwrap().success());
    };
    let folder = tempfile::tempdir().unwrap();
    let hub = HubProcess::start_command(
        std::process::Command::new("sh")
            .args(["-c", r#"trap "" XFSZ; exec "$0" serve "$@""#, env!("CARGO_BIN_EXE_sayso")])
            .args(["--open", "--listen", "127.0.0.1:0", "--data", folder.path().to_str().unwrap()]),
    );
    let client = hub.client();
    client.start_session();
    assert_eq!(client.get("/readyz").body, "good\n");
    set_file_size_limit(&hub, "1");
    let start = r#"{"summary_normal":"x","localization_hints":{"primary_language":"en"}}"#;
    assert_eq!(client.post("/agent/v1/sessions", start).status, 503);
    assert!(hub.wait_for_log("storage.failed").contains(" error "));
    let unhealthy = client.get("/readyz");
    assert_eq!(unhealthy.status, 503);
    assert!(unhealthy.json_str("title").contains("cannot be written"), "{unhealthy:?}");
    assert_eq!(client.get("/healthz").body, "good\n", "the hub is still alive");
    let samples = metrics(&client);
    assert!(samples["sayso_storage_healthy"] < 0.5 && samples["sayso_commit_failures_total"] > 0.5);
    assert!(samples["sayso_last_commit_failure_timestamp_seconds"] > 1e9);
    assert!(samples["sayso_journal_bytes"] > 0.5);
    set_file_size_limit(&hub, "unlimited");
    // The hub notices that it can store again, without a request.
    hub.wait_for_log("storage.recovered");
    assert_eq!(client.get("/readyz").status, 200);
    client.start_session();
}
