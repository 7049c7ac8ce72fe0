//! Authentication and roles.

use std::process::Command;

use testing::cli::create_token;
use testing::hub::HubProcess;
use testing::messages::REPLY_CAPABILITIES;

#[test]
fn a_token_can_do_only_what_its_role_allows() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens").to_str().unwrap().to_owned();
    let bank = create_token(&file, &["--role", "agent", "--name", "bank", "--agent-id", "bank"]);
    let mail = create_token(&file, &["--role", "agent", "--name", "mail", "--agent-id", "mail"]);
    let ada = create_token(&file, &["--role", "listener", "--name", "ada"]);
    let eve = create_token(&file, &["--role", "observer", "--name", "eve"]);
    let ben = create_token(&file, &["--role", "listener", "--name", "ben", "--scope", "agent:mail"]);
    let hub = HubProcess::start(&["--memory", "--listen", "127.0.0.1:0", "--tokens", &file]);
    let anonymous = hub.client();
    let [bank, mail, ada, eve, ben] = [bank, mail, ada, eve, ben].map(|token| anonymous.with_bearer(&token));

    assert_eq!(anonymous.post("/agent/v1/sessions", "{}").status, 401);
    assert_eq!(anonymous.with_bearer("sayso_guess").post("/agent/v1/sessions", "{}").status, 401);
    assert_eq!(ada.post("/agent/v1/sessions", "{}").status, 403);
    assert_eq!(bank.post("/aaep/v1/subscriptions", "{}").status, 403);

    let ada_subscription = ada.subscribe(REPLY_CAPABILITIES);
    let (eve_subscription, ben_subscription) =
        (eve.subscribe(REPLY_CAPABILITIES), ben.subscribe(REPLY_CAPABILITIES));
    assert_eq!(
        ben.get(&format!("/aaep/v1/events?subscription_id={ada_subscription}")).status,
        404,
        "a listener cannot use another listener's subscription"
    );
    let mut ada_stream = ada.open_event_stream(&ada_subscription, None);
    let mut ben_stream = ben.open_event_stream(&ben_subscription, None);
    let session = bank.start_session();
    assert_eq!(ada_stream.next_type(), "session.started");
    assert_eq!(
        mail.post(&format!("/agent/v1/sessions/{session}/output"), "x").status,
        404,
        "an agent cannot use another agent's session"
    );
    let spoofed = r#"{"summary_normal":"x","producer":{"agent_id":"bank"},"localization_hints":{"primary_language":"en"}}"#;
    assert_eq!(
        mail.post("/agent/v1/sessions", spoofed).status,
        400,
        "an agent cannot claim another agent's id"
    );

    let token = bank.ask_confirmation(&session);
    let path = format!("/agent/v1/sessions/{session}/replies/{token}");
    for (client, subscription) in [
        (&eve, &eve_subscription),
        (&ben, &ben_subscription),
        (&ben, &ada_subscription),
        (&eve, &ada_subscription),
    ] {
        assert_eq!(
            client.reply(subscription, &token, "accept").status,
            204,
            "an ineffective reply gets the same response as a valid one"
        );
    }
    assert_eq!(bank.get(&path).json_str("status"), "pending", "the replies have no effect");
    assert_eq!(mail.get(&path).status, 404);
    assert_eq!(ada.reply(&ada_subscription, &token, "accept").status, 204);
    assert_eq!(bank.get(&path).json_str("decision"), "accept");
    mail.start_session();
    let (kind, _, event) = ben_stream.next();
    assert_eq!((kind.as_str(), event["producer"]["agent_id"].as_str()), ("session.started", Some("mail")));
}

#[test]
fn the_first_start_creates_a_token_and_names_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    let hub = HubProcess::start(&["--listen", "127.0.0.1:0", "--data", data]);
    let token = &hub.admin_token();
    assert_eq!(hub.client().post("/aaep/v1/subscriptions", "{}").status, 401);
    hub.client().with_bearer(token).subscribe("{}");
    drop(hub);
    let restarted = HubProcess::start(&["--listen", "127.0.0.1:0", "--data", data]);
    assert!(
        !restarted.startup_lines.iter().any(|line| line.contains("admin token")),
        "a restart creates no token: {:?}",
        restarted.startup_lines
    );
    restarted.client().with_bearer(token).subscribe("{}");
}

#[test]
fn open_access_is_allowed_on_loopback_only() {
    let refused = Command::new(env!("CARGO_BIN_EXE_sayso"))
        .args(["serve", "--open", "--memory", "--listen", "0.0.0.0:0"])
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("loopback"));
    assert!(
        HubProcess::start_in_memory().startup_lines.iter().any(|line| line.starts_with("warning: --open"))
    );
}
