//! A collector of OTLP over HTTP that reads what it is sent.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use serde_json::Value;

use super::starts;
use crate::hub::{CAN_REPLY, Hub, address_of_its_own};

pub(super) struct Collector {
    address: String,
    posts: Receiver<(String, Value)>,
}

impl Collector {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (tell, posts) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = BufReader::new(stream.unwrap());
                let mut head = Vec::new();
                loop {
                    let mut line = String::new();
                    stream.read_line(&mut line).unwrap();
                    if line.trim().is_empty() {
                        break;
                    }
                    head.push(line.trim().to_owned());
                }
                let header = |name: &str| head.iter().find_map(|line| line.strip_prefix(name));
                assert_eq!(header("Content-Type: "), Some("application/json"));
                let mut body = vec![0; header("Content-Length: ").unwrap().parse().unwrap()];
                stream.read_exact(&mut body).unwrap();
                let path = head[0].split(' ').nth(1).unwrap().to_owned();
                if tell.send((path, serde_json::from_slice(&body).unwrap())).is_err() {
                    return;
                }
                // Answered only when it is counted: the hub may stop right after.
                stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").unwrap();
            }
        });
        Self { address, posts }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/here", self.address)
    }

    /// All that was posted; the hub has stopped.
    pub(super) fn posts(&self) -> Vec<(String, Value)> {
        self.posts.try_iter().collect()
    }
}

/// An attribute by its key.
fn attribute<'v>(of: &'v Value, key: &str) -> &'v Value {
    let all = of["attributes"].as_array().unwrap();
    let found = all.iter().find(|one| one["key"] == key).unwrap_or_else(|| panic!("no {key}: {of}"));
    &found["value"]
}

#[test]
fn spans_and_metrics_reach_a_collector() {
    let collector = Collector::start();
    let hub = starts(&["--otlp", &collector.url()]);
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let traced = hub.client().with(&format!("traceparent: 00-{trace}-00f067aa0ba902b7-01"));
    let client = hub.client();
    let subscription = client.subscribe(CAN_REPLY);
    let _ear = client.listen(&subscription, None);
    let session = traced.start();
    let token = client.ask(&session);
    client.reply(&subscription, &token, "accept");
    client.get("/nothing");
    hub.last_words();

    let posts = collector.posts();
    let under = |path: &str, list: &str, scopes: &str, items: &str| -> Vec<Value> {
        let bodies = posts.iter().filter(|(to, _)| to == path).map(|(_, body)| body);
        let resources = bodies.flat_map(|body| body[list].as_array().unwrap());
        resources
            .flat_map(|resource| {
                assert_eq!(attribute(&resource["resource"], "service.name")["stringValue"], "sayso");
                resource[scopes].as_array().unwrap()
            })
            .flat_map(|scope| scope[items].as_array().unwrap().clone())
            .collect()
    };
    let spans = under("/here/v1/traces", "resourceSpans", "scopeSpans", "spans");
    let named = |name: &str| {
        spans.iter().find(|span| span["name"] == name).unwrap_or_else(|| panic!("no {name}: {spans:#?}"))
    };
    let mut ids = std::collections::BTreeSet::new();
    for span in &spans {
        let nanos = |name: &str| span[name].as_str().unwrap().parse::<u128>().unwrap();
        assert!(
            nanos("startTimeUnixNano") > 0 && nanos("startTimeUnixNano") <= nanos("endTimeUnixNano"),
            "{span}"
        );
        assert_eq!(
            (span["traceId"].as_str().unwrap().len(), span["spanId"].as_str().unwrap().len()),
            (32, 16)
        );
        assert!(ids.insert(span["spanId"].as_str().unwrap()), "each has its own id");
    }
    let start = named("POST /agent/v1/sessions");
    assert_eq!(
        (&start["traceId"], &start["parentSpanId"], &start["kind"]),
        (&trace.into(), &"00f067aa0ba902b7".into(), &2.into())
    );
    assert_eq!(attribute(start, "http.response.status_code")["intValue"], "201");
    assert_eq!(attribute(named("question"), "sayso.by")["stringValue"], "reply");
    assert_eq!(named("turn commit")["kind"], 1);
    assert_eq!(attribute(named("GET other"), "http.response.status_code")["intValue"], "404");

    let metrics = under("/here/v1/metrics", "resourceMetrics", "scopeMetrics", "metrics");
    let last =
        |name: &str| metrics.iter().rfind(|one| one["name"] == name).unwrap_or_else(|| panic!("no {name}"));
    let events = &last("sayso_events_published")["sum"];
    assert_eq!((&events["isMonotonic"], &events["aggregationTemporality"]), (&true.into(), &2.into()));
    assert_eq!(events["dataPoints"][0]["asDouble"], 4);
    assert_eq!(last("sayso_sessions_open")["gauge"]["dataPoints"][0]["asDouble"], 1);
    let seconds = &last("sayso_commit_seconds")["histogram"]["dataPoints"][0];
    let (counts, bounds) =
        (seconds["bucketCounts"].as_array().unwrap(), seconds["explicitBounds"].as_array().unwrap());
    assert_eq!(counts.len(), bounds.len() + 1);
    let sum: u64 = counts.iter().map(|count| count.as_str().unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(seconds["count"], sum.to_string());
}

#[test]
fn a_collector_that_is_away_is_told_once_and_hinders_nobody() {
    let gone = address_of_its_own();
    let hub: Hub = starts(&["--otlp", &format!("http://{gone}")]);
    let client = hub.client();
    for _ in 0..50 {
        client.start();
    }
    assert!(hub.logs("otlp.away").contains(" warn "));
    while super::metrics(&client)["sayso_otlp_spans_dropped_total"] < 100.0 {}
    let rest = hub.last_words();
    assert!(!rest.iter().any(|line| line.contains("otlp.away")), "once: {rest:#?}");
}
