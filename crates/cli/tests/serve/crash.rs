//! The hub is killed, and comes back with what was acknowledged.

use testing::hub::Hub;
use testing::messages::CAN_REPLY;

#[test]
fn what_was_acknowledged_is_there_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let mut hub = Hub::on_disk(folder.path());
    let client = hub.client();
    let subscription = client.subscribe(CAN_REPLY);
    let mut ear = client.listen(&subscription, None);
    let session = client.start();
    let last = ear.next().1;
    let token = client.ask(&session);
    hub.kill();

    let mut hub = Hub::on_disk(folder.path());
    let client = hub.client();
    let path = format!("/agent/v1/sessions/{session}/replies/{token}");
    assert_eq!(client.get(&path).text("status"), "pending", "the question is still open");
    let mut ear = client.listen(&subscription, Some(&last));
    assert_eq!((ear.next_type(), ear.next_type()), ("state.changed".into(), "awaiting.confirmation".into()));
    assert_eq!(client.reply(&subscription, &token, "accept").status, 204);
    assert_eq!(client.get(&path).text("decision"), "accept");
    hub.kill();

    let mut hub = Hub::on_disk(folder.path());
    let client = hub.client();
    assert_eq!(client.get(&path).text("decision"), "accept", "decided once, and for good");
    assert_eq!(client.reply(&subscription, &token, "reject").status, 204, "answered like any other");
    assert_eq!(client.get(&path).text("decision"), "accept");
    assert_eq!(hub.stop(), 0);
}

#[test]
fn two_hubs_do_not_share_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let _hub = Hub::on_disk(folder.path());
    let second = std::process::Command::new(env!("CARGO_BIN_EXE_sayso"))
        .args(["serve", "--open", "--listen", "127.0.0.1:0", "--data", folder.path().to_str().unwrap()])
        .output()
        .unwrap();
    assert_eq!(second.status.code(), Some(2), "{}", String::from_utf8_lossy(&second.stderr));
}
