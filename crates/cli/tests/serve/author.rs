//! The crate `sayso` against the real binary.

use testing::hub::{Hub, reserved_address};
use testing::messages::CAN_REPLY;

#[test]
fn an_agent_goes_on_when_the_hub_was_killed_and_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let address = reserved_address();
    let data = folder.path().to_str().unwrap().to_owned();
    let start = move |address: &str| Hub::start(&["--open", "--listen", address, "--data", &data]);
    let mut hub = start(&address);
    let subscription = hub.client().subscribe(CAN_REPLY);
    let mut ear = hub.client().listen(&subscription, None);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (hub, first) = runtime.block_on(async {
        let agent = sayso::Hub::connect(format!("http://{address}")).open().await.unwrap();
        let session = agent.session("Pay Ben.").start().await.unwrap();
        let (kind, first, _) = ear.next();
        assert_eq!(kind, "session.started");
        session.think("Before.").await.unwrap();
        hub.kill();
        let back = tokio::task::spawn_blocking(move || start(&address));
        let (said, back) = tokio::join!(session.think("While it was away."), back);
        said.unwrap();
        session.finish("Paid.").await.unwrap();
        (back.unwrap(), first)
    });
    let mut ear = hub.client().listen(&subscription, Some(&first));
    let mut heard = Vec::new();
    while heard.last().is_none_or(|last| last != "Paid.") {
        let (_, _, event) = ear.next();
        heard.extend(event["summary_normal"].as_str().map(str::to_owned));
    }
    // Each once, though it was asked for again.
    assert_eq!(heard, ["Before.", "While it was away.", "Paid."]);
}
