//! The node's own metrics.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use crate::raw_peer::{RawPeer, SESSIONS};
use crate::script::{Script, assert_same_end, run_script};
use crate::test_node::{NodeBuilder, TestNode, start_pair};

/// The samples of a node, by name and labels.
pub(crate) fn metrics(node: &TestNode) -> BTreeMap<String, f64> {
    let page = node.get("/metrics").body;
    let samples = page.lines().filter(|line| line.starts_with("sayso_asp_"));
    samples
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(name, value)| (name.to_owned(), value.parse().unwrap()))
        .collect()
}

#[test]
fn the_documented_metrics_are_complete() {
    let document =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/asp.md")).unwrap();
    let section = document.split("\n### Metrics\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let documented = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let node = NodeBuilder::new("press");
    let folder = node.create_folder();
    let node = node.start(folder, &[]);
    let page = node.get("/metrics").body;
    let names = page.lines().filter_map(|line| line.strip_prefix("# TYPE sayso_asp_")?.split(' ').next());
    let names: BTreeSet<String> = names.map(|name| format!("sayso_asp_{name}")).collect();
    assert_eq!(documented.map(str::to_owned).collect::<BTreeSet<_>>(), names);
}

#[test]
fn metrics_count_sessions_messages_and_refusals() {
    let pair = start_pair(|builder| builder);
    let script = Script::agreed(&pair);
    let session = run_script(pair.each_ref(), &script, |_, _, _| {});
    assert_same_end(pair.each_ref(), &script, &session);
    let [buyer, press] = pair.each_ref().map(metrics);
    for performative in ["PROPOSE", "COUNTER", "CLARIFY", "INFORM", "COMMIT", "ACCEPT", "ESCALATE", "CLOSE"] {
        let sent = |metrics: &BTreeMap<String, f64>| {
            metrics[&format!("sayso_asp_messages_sent_total{{performative=\"{performative}\"}}")]
        };
        let received = |metrics: &BTreeMap<String, f64>| {
            metrics[&format!("sayso_asp_messages_received_total{{performative=\"{performative}\"}}")]
        };
        assert!(sent(&buyer) + sent(&press) > 0.0, "{performative}");
        assert_eq!((sent(&buyer), sent(&press)), (received(&press), received(&buyer)), "{performative}");
    }
    assert_eq!((buyer["sayso_asp_outbox_messages"], buyer["sayso_asp_outbox_oldest_seconds"]), (0.0, 0.0));
}

#[test]
fn metrics_count_refused_and_forged_messages_and_peers_that_do_not_answer() {
    let peer = RawPeer::new("peer");
    let builder = NodeBuilder::new("press").policy(
        "[limits]\nmessages_per_minute = [999, 999, 999, 999, 999]\nretry_delay_ms = 10\n[circuit_breaker]\nfailure_threshold = 1\n",
    );
    let folder = builder.create_folder();
    let node = builder.start(folder, &[peer.card_file()]);
    let mut session = peer.open_conversation(&node);
    let forged = peer.session(&node).invitation("a talk").text.replace("a talk", "a walk");
    assert_eq!(peer.send(&node, "POST", SESSIONS, &forged).status, 400);
    let (_, other) = (session.id.clone(), peer.session(&node).invitation("another talk").text);
    assert_eq!(peer.send(&node, "POST", &session.messages_path(), &other).status, 422);
    node.send(&session.id, "OBSERVE", &json!({"subject": "the weather"}));
    let counted = crate::test_node::poll("the open circuit", || {
        let counted = metrics(&node);
        (counted["sayso_asp_circuits_open"] > 0.0).then_some(counted)
    });
    assert_eq!(
        counted["sayso_asp_sessions{state=\"INTRODUCED\"}"]
            + counted["sayso_asp_sessions{state=\"CONVERSING\"}"],
        1.0
    );
    assert_eq!(counted["sayso_asp_messages_dropped_total"], 1.0);
    let refused = "sayso_asp_messages_refused_total{by=\"node\",code=\"invalid_state_transition\"}";
    assert_eq!(counted[refused], 1.0);
    assert!(counted["sayso_asp_outbox_messages"] >= 1.0);
    assert!(counted["sayso_asp_delivery_failures_total"] >= 1.0);
    drop(session.sign(asp::Performative::Close, r#"{"reason":"done"}"#));
}
