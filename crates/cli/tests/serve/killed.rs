//! The hub is killed at random moments under load, again and again: nothing acknowledged is lost, nothing is decided twice,
//! and nothing irreversible is let through without a recorded yes.
//!
//! Twenty kills here; `KILLS=200` for the long form. The moment is a number of acknowledged events, by a seed that is printed.

use std::collections::HashSet;
use std::sync::mpsc::channel;

use testing::http::Client;
use testing::hub::Hub;
use testing::messages::CAN_REPLY;

/// What has been promised so far.
#[derive(Default)]
struct Promised {
    events: Vec<String>,
    /// Questions whose acceptance was acknowledged.
    accepted: Vec<String>,
    /// Questions that nobody answered.
    unanswered: Vec<String>,
    /// Questions on which a call was acknowledged.
    spent: Vec<String>,
}

#[test]
fn nothing_that_was_acknowledged_is_lost_however_often_it_is_killed() {
    let kills: u64 = std::env::var("KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(20);
    let seed: u64 = std::env::var("PROPERTY_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7);
    println!("{kills} kills, seed {seed}");
    let folder = tempfile::tempdir().unwrap();
    let mut dice = seed;
    let mut promised = Promised::default();
    let mut totals = (0, 0);
    let (mut session, mut subscription, mut first) = (String::new(), String::new(), String::new());
    for round in 0..kills {
        let mut hub = Hub::on_disk(folder.path());
        let client = hub.client();
        if round % 5 == 0 {
            subscription = client.subscribe(CAN_REPLY);
            let mut ear = client.listen(&subscription, None);
            session = client.start();
            first = loop {
                let (kind, id, event) = ear.next();
                if kind == "session.started" && event["session_id"] == session.as_str() {
                    break id;
                }
            };
            totals = (totals.0 + promised.accepted.len(), totals.1 + promised.spent.len());
            promised = Promised::default();
        } else {
            check(&client, &session, &subscription, &first, &promised);
        }
        let _ear = client.listen(&subscription, None);
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let moment = promised.events.len() + usize::try_from(dice >> 60).unwrap() + 1;
        let (now, told) = channel::<()>();
        std::thread::scope(|scope| {
            let doomed = &mut hub;
            let killer = scope.spawn(move || {
                let _ = told.recv();
                doomed.kill();
            });
            let mut left = Some(now);
            while work(&client, &session, &subscription, &mut promised).is_some() {
                if promised.events.len() >= moment {
                    left = None;
                }
            }
            drop(left);
            killer.join().unwrap();
        });
    }
    let hub = Hub::on_disk(folder.path());
    check(&hub.client(), &session, &subscription, &first, &promised);
    println!("{} answers and {} calls were acknowledged", totals.0, totals.1);
    assert!(totals.0 > 3 && totals.1 > 1, "there was something to lose");
}

/// One piece of work; `None` once the hub is gone. Only what is acknowledged is promised.
fn work(client: &Client, session: &str, subscription: &str, promised: &mut Promised) -> Option<()> {
    let path = |rest: &str| format!("/agent/v1/sessions/{session}/{rest}");
    let looking =
        r#"{"type":"aaep:agent.progress.updated","progress":{"percent":5},"summary_normal":"Working."}"#;
    let said = client.try_send("POST", &path("events"), looking)?;
    assert_eq!(said.status, 200, "{said:?}");
    let ids: serde_json::Value = serde_json::from_str(&said.body).ok()?;
    promised
        .events
        .extend(ids["event_ids"].as_array()?.iter().filter_map(|id| id.as_str().map(str::to_owned)));
    if promised.events.len().is_multiple_of(4) {
        let asked = client.try_send("POST", &path("confirmations"), &question(promised.events.len()))?;
        if asked.status == 429 {
            return Some(());
        }
        assert_eq!(asked.status, 201, "{asked:?}");
        let token = asked.text("reply_token");
        if promised.events.len().is_multiple_of(8) {
            promised.unanswered.push(token);
            return Some(());
        }
        let replied = client.try_reply(subscription, &token, "accept")?;
        assert_eq!(replied.status, 204);
        promised.accepted.push(token.clone());
        let call = format!(
            r#"{{"type":"aaep:agent.tool.invoked","tool":"send","tool_call_id":"call_{0}","risk_level":"high","irreversible":true,"summary_normal":"Sending.","reply_token":"{token}","arguments":{{"amount":"{0}.00"}}}}"#,
            promised.events.len()
        );
        let called = client.try_send("POST", &path("events"), &call)?;
        assert_eq!(called.status, 200, "{called:?}");
        promised.spent.push(token);
        let done = format!(
            r#"{{"type":"aaep:agent.tool.completed","tool":"send","tool_call_id":"call_{}","status":"success","summary_normal":"Sent."}}"#,
            promised.events.len()
        );
        client.try_send("POST", &path("events"), &done)?;
    }
    Some(())
}

fn question(amount: usize) -> String {
    format!(
        r#"{{"action":"Send {amount} euro to Ben.","consequence":"It cannot be undone.","irreversible":true,"risk_level":"high","timeout_seconds":600,"default_decision":"reject","summary_normal":"May I send {amount} euro to Ben?","tool":"send","arguments":{{"amount":"{amount}.00"}}}}"#
    )
}

/// Everything promised is there.
fn check(client: &Client, session: &str, subscription: &str, first: &str, promised: &Promised) {
    let path = |token: &str| format!("/agent/v1/sessions/{session}/replies/{token}");
    for token in &promised.accepted {
        assert_eq!(client.get(&path(token)).text("decision"), "accept", "an acknowledged yes");
    }
    for token in &promised.unanswered {
        assert_eq!(client.get(&path(token)).text("status"), "pending", "nobody answered");
    }
    for token in &promised.spent {
        let call = format!(
            r#"{{"type":"aaep:agent.tool.invoked","tool":"send","tool_call_id":"call_again","risk_level":"high","irreversible":true,"summary_normal":"Sending.","reply_token":"{token}","arguments":{{"amount":"4.00"}}}}"#
        );
        let again = client.post(&format!("/agent/v1/sessions/{session}/events"), &call);
        assert_eq!(again.status, 422, "a yes is spent once: {again:?}");
    }
    let mut missing: HashSet<&str> = promised.events.iter().map(String::as_str).collect();
    let mut ear = client.listen(subscription, Some(first));
    let mut seen = HashSet::new();
    while !missing.is_empty() {
        let (_, id, _) = ear.next();
        assert!(seen.insert(id.clone()), "heard twice: {id}");
        missing.remove(id.as_str());
    }
}
