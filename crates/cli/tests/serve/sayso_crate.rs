//! The `sayso` crate against the real binary.

use testing::hub::{HubProcess, reserved_address};
use testing::messages::REPLY_CAPABILITIES;

#[test]
fn an_agent_continues_after_the_hub_was_killed_and_restarted() {
    let folder = tempfile::tempdir().unwrap();
    let address = reserved_address();
    let data = folder.path().to_str().unwrap().to_owned();
    let start_hub = move |address: &str| HubProcess::start(&["--open", "--listen", address, "--data", &data]);
    let mut hub = start_hub(&address);
    let subscription = hub.client().subscribe(REPLY_CAPABILITIES);
    let mut stream = hub.client().open_event_stream(&subscription, None);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (hub, first_event_id) = runtime.block_on(async {
        let agent = sayso::Hub::connect(format!("http://{address}")).open().await.unwrap();
        let session = agent.session("Pay Ben.").start().await.unwrap();
        let (kind, first_event_id, _) = stream.next();
        assert_eq!(kind, "session.started");
        session.think("Before.").await.unwrap();
        hub.kill();
        let restarted = tokio::task::spawn_blocking(move || start_hub(&address));
        let (result, restarted) = tokio::join!(session.think("While it was away."), restarted);
        result.unwrap();
        session.finish("Paid.").await.unwrap();
        (restarted.unwrap(), first_event_id)
    });
    let mut stream = hub.client().open_event_stream(&subscription, Some(&first_event_id));
    let mut summaries = Vec::new();
    while summaries.last().is_none_or(|last| last != "Paid.") {
        let (_, _, event) = stream.next();
        summaries.extend(event["summary_normal"].as_str().map(str::to_owned));
    }
    // Each summary arrives once, although the agent retried the request.
    assert_eq!(summaries, ["Before.", "While it was away.", "Paid."]);
}
