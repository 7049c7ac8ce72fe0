//! Those who ask for everything: each has a limit, is told so, and takes nothing from others.

use testing::cli::token;
use testing::http::Client;
use testing::hub::Hub;
use testing::messages::{CAN_REPLY, QUESTION};
use testing::messages::{close, request};

struct Scene {
    hub: Hub,
    _folder: tempfile::TempDir,
    tokens: [String; 4],
}

impl Scene {
    /// Two agents and two listeners.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens").to_str().unwrap().to_owned();
        let agent = |name| token(&file, &["--role", "agent", "--name", name, "--agent-id", name]);
        let listener = |name| token(&file, &["--role", "listener", "--name", name]);
        let tokens = [agent("bank"), agent("post"), listener("ada"), listener("eve")];
        // Subscriptions on which nobody listens last as long as the test, however slow the machine.
        let hub = Hub::start(&[
            "--memory",
            "--listen",
            "127.0.0.1:0",
            "--tokens",
            &file,
            "--hub-resume-window",
            "1h",
        ]);
        Self { hub, _folder: folder, tokens }
    }

    fn everybody(&self) -> [Client; 4] {
        self.tokens.each_ref().map(|token| self.hub.client().bearer(token))
    }
}

#[test]
fn nobody_takes_all_subscriptions() {
    let scene = Scene::new();
    let [_, _, ada, eve] = scene.everybody();
    let mut last = String::new();
    for _ in 0..1_000 {
        last = eve.subscribe("{}");
    }
    let refused = eve.post("/aaep/v1/subscriptions", &request("{}"));
    assert_eq!((refused.status, refused.text("type")), (429, "subscription.rejected".into()));
    assert_eq!(refused.text("reason_code"), "rate_limit");
    assert!(refused.text("reason_message").contains("too many subscriptions"), "{refused:?}");
    ada.subscribe(CAN_REPLY);
    assert_eq!(eve.post("/aaep/v1/replies", &close(&last)).status, 204);
    eve.subscribe("{}");
}

#[test]
fn a_hostile_agent_asks_only_so_much() {
    let scene = Scene::new();
    let [bank, post, ada, _] = scene.everybody();
    let subscription = ada.subscribe(CAN_REPLY);
    let _ear = ada.listen(&subscription, None);
    let ask = |who: &Client, session: &str, number: usize| {
        let question =
            QUESTION.replace("5 euro", &format!("{number} euro")).replace("5.00", &format!("{number}.00"));
        who.post(&format!("/agent/v1/sessions/{session}/confirmations"), &question)
    };
    for _ in 0..4 {
        let session = bank.start();
        for number in 0..16 {
            assert_eq!(ask(&bank, &session, number).status, 201);
        }
        let refused = ask(&bank, &session, 16);
        assert_eq!(refused.status, 429, "{refused:?}");
        assert!(refused.text("title").contains("questions"), "{refused:?}");
    }
    let session = bank.start();
    let refused = ask(&bank, &session, 1);
    assert_eq!(refused.status, 429, "64 of one agent: {refused:?}");
    let session = post.start();
    let asked = ask(&post, &session, 1);
    assert_eq!(asked.status, 201, "another agent may ask: {asked:?}");
    assert_eq!(ada.reply(&subscription, &asked.text("reply_token"), "accept").status, 204);
    let path = format!("/agent/v1/sessions/{session}/replies/{}", asked.text("reply_token"));
    assert_eq!(post.get(&path).text("decision"), "accept");
}

#[test]
fn an_agent_that_marks_everything_critical_is_told_so() {
    let scene = Scene::new();
    let [bank, post, ada, _] = scene.everybody();
    let subscription = ada.subscribe(CAN_REPLY);
    let mut ear = ada.listen(&subscription, None);
    let (session, other) = (bank.start(), post.start());
    let events = |who: &Client, session: &str, body: &str| {
        who.with("Content-Type: application/x-ndjson")
            .post(&format!("/agent/v1/sessions/{session}/events"), body)
    };
    let shout = r#"{"type":"aaep:agent.progress.updated","urgency":"critical","progress":{"percent":5},"summary_normal":"Look!"}"#;
    let calm = shout.replace(r#""urgency":"critical","#, "");
    assert_eq!(events(&bank, &session, &[shout; 60].join("\n")).status, 200);
    // Unless a minute passed just then.
    let refused =
        (0..3).map(|_| events(&bank, &session, &[shout; 60].join("\n"))).find(|answer| answer.status != 200);
    let refused = refused.expect("a refusal");
    assert_eq!(refused.status, 429, "{refused:?}");
    assert!(refused.text("title").contains("60 critical events in a minute"), "{refused:?}");
    assert_eq!(events(&bank, &session, &calm).status, 200);
    assert_eq!(events(&post, &other, shout).status, 200);
    let token = bank.ask(&session);
    loop {
        let (_, _, event) = ear.next();
        if event["reply_token"] == token.as_str() {
            break;
        }
    }
}
