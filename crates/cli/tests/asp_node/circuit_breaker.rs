//! Peers that do not answer: the node calls them once in a while, and not for each session.

use serde_json::json;

use crate::metrics::metrics;
use crate::peer_server::{DeliveryReply, PeerServer};
use crate::test_node::{NodeBuilder, POLL_INTERVAL, View, poll};

#[test]
fn one_trial_call_decides_for_all_waiting_sessions() {
    let server = PeerServer::start(true);
    let peer = server.peer();
    let policy = "[limits]\nmessages_per_minute = [999, 999, 999, 999, 999]\ninvitations_per_minute = [999, 999, 999, 999, 999]\nretry_delay_ms = 10\nmax_retry_delay_ms = 20\n[circuit_breaker]\nfailure_threshold = 3\nopen_ms = 300\nmax_open_ms = 300\n";
    let builder = NodeBuilder::new("press").policy(policy);
    let folder = builder.create_folder();
    let node = builder.start(folder, &[peer.card_file()]);
    let sessions: Vec<_> = (0..8).map(|_| peer.open_conversation(&node)).collect();
    server.answer_deliveries(DeliveryReply::Busy);
    for session in &sessions {
        node.send(&session.id, "OBSERVE", &json!({"subject": "the weather"}));
    }
    poll("the open circuit", || (metrics(&node)["sayso_asp_circuits_open"] == 1.0).then_some(()));
    // The calls that were on their way when the circuit opened get their answers first.
    for _ in 0..10 {
        std::thread::sleep(POLL_INTERVAL);
    }
    server.answer_deliveries(DeliveryReply::Hold);
    poll("the trial call", || (server.held() > 0).then_some(()));
    // While the trial call waits for its answer, the other sessions do not call.
    for _ in 0..60 {
        assert_eq!(server.held(), 1);
        std::thread::sleep(POLL_INTERVAL);
    }
    server.answer_deliveries(DeliveryReply::Accept);
    for session in &sessions {
        node.wait_for(&session.id, "the delivery", View::is_acknowledged);
    }
    assert_eq!(metrics(&node)["sayso_asp_circuits_open"], 0.0);
}
