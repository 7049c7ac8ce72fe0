//! The threats of chapter 10, each tried over the wire against the real binary. What a single turn shows is in the hub's own
//! `attacks`; T4 is in `floods`.

use serde_json::Value;

use testing::cli::token;
use testing::http::{Client, EventStream, Response};
use testing::hub::Hub;
use testing::messages::{CAN_REPLY, QUESTION};
use testing::messages::{close, renegotiate, reply};

/// A bank that has asked Ada for consent; a post office; Eve, who hears only the post; and Oda, who only watches.
struct Scene {
    hub: Hub,
    _folder: tempfile::TempDir,
    bank: Client,
    post: Client,
    ada: Client,
    eve: Client,
    oda: Client,
    adas: String,
    ear: EventStream,
    session: String,
    token: String,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens").to_str().unwrap().to_owned();
        let made = |role: &str, name: &str, rest: &[&str]| {
            token(&file, &[&["--role", role, "--name", name], rest].concat())
        };
        let bank = made("agent", "bank", &["--agent-id", "bank"]);
        let post = made("agent", "post", &["--agent-id", "post"]);
        let ada = made("listener", "ada", &[]);
        let eve = made("listener", "eve", &["--scope", "agent:post"]);
        let oda = made("observer", "oda", &[]);
        let data = folder.path().join("data").to_str().unwrap().to_owned();
        let hub = Hub::start(&["--listen", "127.0.0.1:0", "--tokens", &file, "--data", &data]);
        let [bank, post, ada, eve, oda] =
            [bank, post, ada, eve, oda].map(|token| hub.client().bearer(&token));
        let adas = ada.subscribe(CAN_REPLY);
        let mut ear = ada.listen(&adas, None);
        let session = bank.start();
        let token = bank.ask(&session);
        while ear.next().2["reply_token"] != token.as_str() {}
        Self { hub, _folder: folder, bank, post, ada, eve, oda, adas, ear, session, token }
    }

    fn publish(&self, event: &str) -> Response {
        self.bank.post(&format!("/agent/v1/sessions/{}/events", self.session), event)
    }

    fn status(&self) -> Response {
        self.bank.get(&format!("/agent/v1/sessions/{}/replies/{}", self.session, self.token))
    }

    fn is_open(&self) {
        assert_eq!(self.status().text("status"), "pending");
        let call = format!(
            r#"{{"type":"aaep:agent.tool.invoked","tool":"send","tool_call_id":"call_1","risk_level":"high","irreversible":true,"summary_normal":"Sending.","reply_token":"{}","arguments":{{"amount":"5.00"}}}}"#,
            self.token
        );
        let sent = self.publish(&call);
        assert!(sent.status == 422 && sent.body.contains("is not answered"), "{sent:?}");
    }

    /// What Ada hears until the question is resolved.
    fn heard_until_resolved(&mut self) -> Vec<Value> {
        let mut heard = Vec::new();
        loop {
            let (_, _, event) = self.ear.next();
            let over = event["extensions"]["sayso"]["reply_token"] == self.token.as_str();
            heard.push(event);
            if over {
                return heard;
            }
        }
    }
}

#[test]
fn t1_a_forged_reply_is_answered_like_a_good_one_and_does_nothing() {
    let scene = Scene::new();
    let (eves, odas) = (scene.eve.subscribe(CAN_REPLY), scene.oda.subscribe(CAN_REPLY));
    let (_hers, _watching) = (scene.eve.listen(&eves, None), scene.oda.listen(&odas, None));
    let good = reply(&scene.adas, &scene.token, "accept");
    let clarified = good
        .replace("confirmation.reply", "clarification.reply")
        .replace(r#""decision":"accept""#, r#""response":"accept""#);
    let later = "2099-01-01T00:00:00.000Z";
    let value: Value = serde_json::from_str(&good).unwrap();
    let forged = [
        (&scene.eve, good.clone()),
        (&scene.eve, reply(&eves, &scene.token, "accept")),
        (&scene.oda, good.clone()),
        (&scene.oda, reply(&odas, &scene.token, "accept")),
        (&scene.bank, good.clone()),
        (&scene.ada, reply(&scene.adas, &format!("rpl_{:032}", 0), "accept")),
        (&scene.ada, good.replace(value["timestamp"].as_str().unwrap(), later)),
        (&scene.ada, good.replacen('{', r#"{"decision":"accept","#, 1)),
        (&scene.ada, clarified),
    ];
    let answers = forged.map(|(who, text)| who.post("/aaep/v1/replies", &text));
    scene.is_open();
    let good = scene.ada.post("/aaep/v1/replies", &good);
    assert_eq!(scene.status().text("decision"), "accept");
    for answer in answers {
        assert_eq!((answer.status, answer.head, answer.body), (204, good.head.clone(), good.body.clone()));
    }
}

#[test]
fn t2_a_reply_that_is_played_again_counts_once() {
    let mut scene = Scene::new();
    let no = reply(&scene.adas, &scene.token, "reject");
    let yes = reply(&scene.adas, &scene.token, "accept");
    for text in [&no, &yes, &no, &yes, &yes] {
        assert_eq!(scene.ada.post("/aaep/v1/replies", text).status, 204);
    }
    assert_eq!(scene.status().text("decision"), "reject");
    let heard = scene.heard_until_resolved();
    assert_eq!(heard.last().unwrap()["extensions"]["sayso"]["decision"], "reject");
    // Nor does it answer the same question asked again.
    let again = scene.bank.ask(&scene.session);
    assert_eq!(scene.ada.post("/aaep/v1/replies", &yes).status, 204);
    let path = format!("/agent/v1/sessions/{}/replies/{again}", scene.session);
    assert_eq!(scene.bank.get(&path).text("status"), "pending");
}

#[test]
fn t3_an_agent_cannot_pass_for_another_for_the_hub_or_for_the_person() {
    let mut scene = Scene::new();
    let state = r#""type":"aaep:agent.state.changed","to_state":"thinking""#;
    let (session, token) = (&scene.session, &scene.token);
    for event in [
        format!(r#"{{{state},"producer":{{"agent_id":"post"}}}}"#),
        format!(r#"{{{state},"session_id":"{session}"}}"#),
        format!(
            r#"{{{state},"extensions":{{"sayso":{{"reply_token":"{token}","decision":"accept","by":"reply"}}}}}}"#
        ),
        reply(&scene.adas, token, "accept"),
    ] {
        let answer = scene.publish(&event);
        assert!(matches!(answer.status, 400 | 422), "{event}: {answer:?}");
    }
    let as_post = r#"{"summary_normal":"I am the post.","producer":{"agent_id":"post"},"localization_hints":{"primary_language":"en"}}"#;
    assert_eq!(scene.bank.post("/agent/v1/sessions", as_post).status, 400);
    scene.is_open();
    assert_eq!(scene.ada.reply(&scene.adas, &scene.token, "reject").status, 204);
    let heard = scene.heard_until_resolved();
    assert!(heard.iter().all(|event| event["producer"]["agent_id"] == "bank"), "{heard:?}");
    assert_eq!(heard.len(), 1, "nothing of it was heard: {heard:?}");
}

#[test]
fn t5_nothing_is_disclosed_outside_a_scope_or_in_an_error() {
    let mut scene = Scene::new();
    let eves = scene.eve.subscribe(CAN_REPLY);
    // Late, and from an event of the bank that it somehow knows.
    let known = scene.bank.post(&format!("/agent/v1/sessions/{}/output", scene.session), "A secret. ");
    let ids: Value = serde_json::from_str(&known.body).unwrap();
    let known = ids["event_ids"][0].as_str().unwrap().to_owned();
    let mut late = scene.eve.listen(&eves, Some(&known));
    let of_post = scene.post.start();
    let (kind, _, event) = late.next();
    assert_eq!((kind.as_str(), event["session_id"].as_str()), ("session.started", Some(&*of_post)));
    for answer in [
        scene.eve.get(&format!("/aaep/v1/events?subscription_id={}", scene.adas)),
        scene.post.get(&format!("/agent/v1/sessions/{}/replies/{}", scene.session, scene.token)),
        scene.eve.reply(&scene.adas, &scene.token, "accept"),
        scene.hub.client().get(&format!("/agent/v1/sessions/{}/replies/{}", scene.session, scene.token)),
    ] {
        let said = format!("{}{}", answer.head, answer.body);
        for secret in ["euro", "Ben", "secret", "bank", "ada", &scene.token, &scene.session] {
            assert!(!said.contains(secret), "{secret}: {answer:?}");
        }
    }
    assert_eq!(scene.ada.reply(&scene.adas, &scene.token, "reject").status, 204);
    scene.heard_until_resolved();
}

#[test]
fn t6_nobody_is_let_in_as_somebody_else() {
    let scene = Scene::new();
    let nobody = scene.hub.client();
    for header in [
        "Authorization: Bearer ",
        "Authorization: Bearer ada",
        "Authorization: Basic YWRhOg==",
        "Authorization: bearer sayso_00000000000000000000000000000000",
        "Cookie: sayso=ada",
        "X-Forwarded-User: ada",
        "X-Forwarded-For: 127.0.0.1",
        "Forwarded: for=127.0.0.1",
    ] {
        let client = nobody.with(header);
        assert_eq!(
            client.get(&format!("/aaep/v1/events?subscription_id={}", scene.adas)).status,
            401,
            "{header}"
        );
        let answered = client.reply(&scene.adas, &scene.token, "accept");
        assert_eq!(answered.status, 401, "{header}");
        assert_eq!(client.post("/agent/v1/sessions", "{}").status, 401, "{header}");
    }
    for listener in [&scene.ada, &scene.oda] {
        assert_eq!(listener.post("/agent/v1/sessions", "{}").status, 403);
        let path = format!("/agent/v1/sessions/{}/confirmations", scene.session);
        assert_eq!(listener.post(&path, QUESTION).status, 404);
    }
    assert_eq!(scene.bank.post("/aaep/v1/subscriptions", &testing::messages::request(CAN_REPLY)).status, 403);
    scene.is_open();
}

#[test]
fn t7_an_extension_decides_nothing_and_speaks_for_nobody() {
    let mut scene = Scene::new();
    let core = r#""@context":["https://aaep-protocol.org/context/v1","https://bank.example/ns/v1"]"#;
    let told = format!(r#"{{"reply_token":"{}","decision":"accept","by":"reply"}}"#, scene.token);
    let state = r#""type":"aaep:agent.state.changed","to_state":"thinking""#;
    for event in [
        format!(r#"{{{state},"extensions":{{"s\u0061yso":{told}}}}}"#),
        format!(r#"{{{state},"extensions":{{"urn:sayso:context:v1":{told}}}}}"#),
        format!(
            r#"{{"type":"sayso:resolved","summary_normal":"You said yes.","extensions":{{"bank":{told}}}}}"#
        ),
        format!(r#"{{{core},{state},"decision":"accept"}}"#),
        QUESTION.replacen(
            '{',
            r#"{"type":"https://aaep-protocol.org/types/agent.awaiting.confirmation","#,
            1,
        ),
    ] {
        let answer = scene.publish(&event);
        assert!(matches!(answer.status, 400 | 422), "{event}: {answer:?}");
    }
    let soft = format!(
        r#"{{{core},"extensions":{{"bank":{{"confirmed":true,"skip_confirmation":true}}}},"type":"aaep:agent.tool.invoked","tool":"send","tool_call_id":"call_2","risk_level":"high","irreversible":true,"summary_normal":"Sending.","reply_token":"{}","arguments":{{"amount":"5.00"}}}}"#,
        scene.token
    );
    assert_eq!(scene.publish(&soft).status, 422);
    scene.is_open();
    assert_eq!(scene.ada.reply(&scene.adas, &scene.token, "accept").status, 204);
    assert_eq!(scene.heard_until_resolved().len(), 1, "nothing of it was heard");
    assert_eq!(scene.publish(&soft).status, 200, "with a yes, what an extension says is carried");
    let (_, _, event) = scene.ear.next();
    assert_eq!(event["extensions"]["bank"]["confirmed"], true, "{event}");
    assert!(event["@context"].as_array().unwrap().contains(&"https://bank.example/ns/v1".into()), "{event}");
}

#[test]
fn t8_a_subscription_id_is_no_key() {
    let mut scene = Scene::new();
    for thief in [&scene.eve, &scene.oda] {
        assert_eq!(thief.get(&format!("/aaep/v1/events?subscription_id={}", scene.adas)).status, 404);
        assert_eq!(thief.post("/aaep/v1/replies", &renegotiate(&scene.adas, "{}")).status, 404);
        assert_eq!(thief.post("/aaep/v1/replies", &close(&scene.adas)).status, 404);
        for message in [
            reply(&scene.adas, &scene.token, "accept"),
            format!(
                r#"{{"type":"sayso:session.stop","session_id":"{}","subscription_id":"{}","timestamp":"2026-11-15T12:00:00Z"}}"#,
                scene.session, scene.adas
            ),
            format!(
                r#"{{"type":"sayso:deadline.extend","reply_token":"{}","subscription_id":"{}","timestamp":"2026-11-15T12:00:00Z"}}"#,
                scene.token, scene.adas
            ),
        ] {
            assert_eq!(thief.post("/aaep/v1/replies", &message).status, 204);
        }
    }
    scene.is_open();
    assert_eq!(scene.ada.reply(&scene.adas, &scene.token, "reject").status, 204, "hers all along");
    assert_eq!(scene.heard_until_resolved().len(), 1);
}

#[test]
fn a_page_of_another_origin_neither_reads_nor_answers() {
    let scene = Scene::new();
    for origin in ["https://evil.example", "null", "http://127.0.0.1", "http://localhost:1"] {
        let page = scene.ada.with(&format!("Origin: {origin}"));
        let plain = page.with("Content-Type: text/plain");
        let kept_out = |answer: &Response| {
            assert_eq!(answer.status, 403, "{origin}: {answer:?}");
            assert!(!answer.head.to_lowercase().contains("access-control-"), "{answer:?}");
        };
        for client in [&page, &plain] {
            kept_out(&client.reply(&scene.adas, &scene.token, "accept"));
        }
        kept_out(&page.send("OPTIONS", "/aaep/v1/replies", ""));
        kept_out(&page.get("/.well-known/aaep-manifest.json"));
        kept_out(&page.get(&format!("/aaep/v1/events?subscription_id={}", scene.adas)));
    }
    scene.is_open();
}
