//! A killed hub restarts with everything that it acknowledged.

use testing::hub::HubProcess;
use testing::messages::REPLY_CAPABILITIES;

#[test]
fn acknowledged_data_survives_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    assert_data_survives_a_kill(&|| HubProcess::start_on_disk(folder.path()));
}

/// Kills hubs that `start` starts with the same journal.
pub(super) fn assert_data_survives_a_kill(start: &dyn Fn() -> HubProcess) {
    let mut hub = start();
    let client = hub.client();
    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let mut stream = client.open_event_stream(&subscription, None);
    let session = client.start_session();
    let last_event_id = stream.next().1;
    let token = client.ask_confirmation(&session);
    hub.kill();

    let mut hub = start();
    let client = hub.client();
    let path = format!("/agent/v1/sessions/{session}/replies/{token}");
    assert_eq!(client.get(&path).json_str("status"), "pending", "the question is still open");
    let mut stream = client.open_event_stream(&subscription, Some(&last_event_id));
    assert_eq!(
        (stream.next_type(), stream.next_type()),
        ("state.changed".into(), "awaiting.confirmation".into())
    );
    assert_eq!(client.reply(&subscription, &token, "accept").status, 204);
    assert_eq!(client.get(&path).json_str("decision"), "accept");
    hub.kill();

    let mut hub = start();
    let client = hub.client();
    assert_eq!(client.get(&path).json_str("decision"), "accept", "the decision is final");
    assert_eq!(
        client.reply(&subscription, &token, "reject").status,
        204,
        "a late reply gets the usual response"
    );
    assert_eq!(client.get(&path).json_str("decision"), "accept");
    assert_eq!(hub.stop(), 0);
}

#[test]
fn two_hubs_cannot_share_a_data_folder() {
    let folder = tempfile::tempdir().unwrap();
    let _hub = HubProcess::start_on_disk(folder.path());
    let second = std::process::Command::new(env!("CARGO_BIN_EXE_sayso"))
        .args(["serve", "--open", "--listen", "127.0.0.1:0", "--data", folder.path().to_str().unwrap()])
        .output()
        .unwrap();
    assert_eq!(second.status.code(), Some(2), "{}", String::from_utf8_lossy(&second.stderr));
}
