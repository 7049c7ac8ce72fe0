//! Who is let in, and as whom.

use std::process::Command;

use testing::cli::token;
use testing::hub::Hub;
use testing::messages::CAN_REPLY;

#[test]
fn each_role_does_what_it_is_for_and_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens").to_str().unwrap().to_owned();
    let bank = token(&file, &["--role", "agent", "--name", "bank", "--agent-id", "bank"]);
    let post = token(&file, &["--role", "agent", "--name", "post", "--agent-id", "post"]);
    let ada = token(&file, &["--role", "listener", "--name", "ada"]);
    let eve = token(&file, &["--role", "observer", "--name", "eve"]);
    let ben = token(&file, &["--role", "listener", "--name", "ben", "--scope", "agent:post"]);
    let hub = Hub::start(&["--memory", "--listen", "127.0.0.1:0", "--tokens", &file]);
    let nobody = hub.client();
    let [bank, post, ada, eve, ben] = [bank, post, ada, eve, ben].map(|token| nobody.bearer(&token));

    assert_eq!(nobody.post("/agent/v1/sessions", "{}").status, 401);
    assert_eq!(nobody.bearer("sayso_guess").post("/agent/v1/sessions", "{}").status, 401);
    assert_eq!(ada.post("/agent/v1/sessions", "{}").status, 403);
    assert_eq!(bank.post("/aaep/v1/subscriptions", "{}").status, 403);

    let hers = ada.subscribe(CAN_REPLY);
    let (watching, other) = (eve.subscribe(CAN_REPLY), ben.subscribe(CAN_REPLY));
    assert_eq!(ben.get(&format!("/aaep/v1/events?subscription_id={hers}")).status, 404, "not his");
    let mut ear = ada.listen(&hers, None);
    let mut his = ben.listen(&other, None);
    let session = bank.start();
    assert_eq!(ear.next_type(), "session.started");
    assert_eq!(
        post.post(&format!("/agent/v1/sessions/{session}/output"), "x").status,
        404,
        "not its session"
    );
    let spoofed = r#"{"summary_normal":"x","producer":{"agent_id":"bank"},"localization_hints":{"primary_language":"en"}}"#;
    assert_eq!(post.post("/agent/v1/sessions", spoofed).status, 400, "it cannot speak as another");

    let asked = bank.ask(&session);
    let path = format!("/agent/v1/sessions/{session}/replies/{asked}");
    for (who, subscription) in [(&eve, &watching), (&ben, &other), (&ben, &hers), (&eve, &hers)] {
        assert_eq!(who.reply(subscription, &asked, "accept").status, 204, "answered like a good one");
    }
    assert_eq!(bank.get(&path).text("status"), "pending", "and without effect");
    assert_eq!(post.get(&path).status, 404);
    assert_eq!(ada.reply(&hers, &asked, "accept").status, 204);
    assert_eq!(bank.get(&path).text("decision"), "accept");
    post.start();
    let (kind, _, event) = his.next();
    assert_eq!((kind.as_str(), event["producer"]["agent_id"].as_str()), ("session.started", Some("post")));
}

#[test]
fn the_first_start_makes_a_token_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    let hub = Hub::start(&["--listen", "127.0.0.1:0", "--data", data]);
    let line = hub.said.iter().find(|line| line.contains("sayso_")).expect("a token");
    let token = &line.rsplit(' ').next().unwrap().to_owned();
    assert_eq!(hub.client().post("/aaep/v1/subscriptions", "{}").status, 401);
    hub.client().bearer(token).subscribe("{}");
    drop(hub);
    let again = Hub::start(&["--listen", "127.0.0.1:0", "--data", data]);
    assert!(!again.said.iter().any(|line| line.contains("sayso_")), "shown once: {:?}", again.said);
    again.client().bearer(token).subscribe("{}");
}

#[test]
fn everybody_is_let_in_on_loopback_only() {
    let refused = Command::new(env!("CARGO_BIN_EXE_sayso"))
        .args(["serve", "--open", "--memory", "--listen", "0.0.0.0:0"])
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("loopback"));
    assert!(Hub::open().said.iter().any(|line| line.starts_with("warning: --open")));
}
