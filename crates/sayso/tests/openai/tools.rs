//! Tools: asked for where they must be, and always told.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sayso::openai::{Arguments, Error, Limits, Outcome, Tool};
use sayso::{By, Refused, Stop};
use serde_json::json;

use crate::openai::{agent, heard, output, sending, stage, until_the_end};
use crate::support::endpoint::{Endpoint, Reply, Then, delta, finish, text};
use crate::support::stage::{Kind, Stage, told};

/// Long enough for any machine.
const PATIENCE: Duration = Duration::from_mins(2);

const ARGUMENTS: &str = r#"{"to":"Ben","euro":5}"#;

#[tokio::test]
async fn arguments_are_read_by_name_and_kind() {
    let written = r#"{"to":"Ben","euro":5,"now":true}"#;
    let endpoint = Endpoint::new([Reply::calls("look", written), Reply::says("That was it.")]).await;
    let look = |arguments: Arguments| async move {
        assert_eq!(arguments.json(), r#"{"to":"Ben","euro":5,"now":true}"#);
        assert_eq!((arguments.text("to").as_deref(), arguments.text("euro")), (Some("Ben"), None));
        assert_eq!((arguments.number("euro"), arguments.boolean("now")), (Some(5.0), Some(true)));
        assert_eq!(["to", "euro", "why"].map(|name| arguments.words(name)), ["Ben", "5", "nothing"]);
        Ok::<_, String>("seen")
    };
    let tool = Tool::new("look", "Looks at its arguments.", r#"{"type":"object"}"#, look);
    let (reply, _) = heard(&agent(&endpoint).tool(tool), &mut stage().await).await;
    assert_eq!(reply.unwrap().calls[0].outcome, Outcome::Done);
}

#[tokio::test]
async fn a_dangerous_tool_runs_once_on_a_yes_and_never_on_a_no() {
    let kinds = [Kind::Embedded, Kind::Client]
        .into_iter()
        .flat_map(|kind| [(kind, "accept", 1), (kind, "reject", 0)]);
    for (kind, decision, runs) in kinds {
        let endpoint = Endpoint::new([Reply::calls("send", ARGUMENTS), Reply::says("That was it.")]).await;
        let mut stage = Stage::new(kind).await;
        let sent = Arc::new(AtomicUsize::new(0));
        let agent = agent(&endpoint).tool(sending(&sent));
        let hub = stage.hub.clone();
        let listening = async {
            let asked = stage.person.decides(decision).await;
            assert_eq!(asked["action"], "Send 5 euro to Ben.");
            assert_eq!(asked["consequence"], "The money is gone at once.");
            assert_eq!((&asked["risk_level"], &asked["irreversible"]), (&json!("high"), &json!(true)));
            until_the_end(&mut stage).await
        };
        let (reply, heard) = tokio::join!(agent.run(&hub, "Pay Ben."), listening);
        let reply = reply.unwrap();
        assert_eq!((reply.text.as_str(), reply.rounds), ("That was it.", 2));
        assert_eq!(sent.load(Ordering::SeqCst), runs);
        assert_eq!(told(&heard).contains(&"tool.invoked".to_owned()), runs == 1, "{heard:?}");
        assert_eq!(output(&heard), "That was it.");
        let asked = endpoint.asked();
        let told = asked[1].last();
        assert_eq!((&told["role"], &told["tool_call_id"]), (&json!("tool"), &json!("c1")));
        let content = told["content"].as_str().unwrap();
        if runs == 1 {
            assert_eq!(content, "Sent to Ben.");
            assert_eq!(reply.calls[0].outcome, Outcome::Done);
        } else {
            assert!(content.starts_with("The person refused. The tool was not run."), "{content}");
            assert!(matches!(reply.calls[0].outcome, Outcome::Refused(Refused { by: By::Reply, .. })));
        }
        let said = &asked[1].body["messages"][2];
        assert_eq!(said["tool_calls"][0]["function"], json!({"name": "send", "arguments": ARGUMENTS}));
        assert_eq!(asked[0].body["tools"][0]["function"]["parameters"]["properties"]["to"]["type"], "string");
    }
}

#[tokio::test]
async fn nobody_who_listens_means_no() {
    let endpoint = Endpoint::new([Reply::calls("send", ARGUMENTS), Reply::says("Then not.")]).await;
    let hub = sayso::Hub::embedded().agent("bank").open().unwrap();
    let sent = Arc::new(AtomicUsize::new(0));
    let reply = agent(&endpoint).tool(sending(&sent)).run(&hub, "Pay Ben.").await.unwrap();
    assert!(matches!(reply.calls[0].outcome, Outcome::Refused(Refused { by: By::Unreachable, .. })));
    assert_eq!(sent.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn calls_in_fragments_are_put_together() {
    let piece = |index: usize, more: serde_json::Value| {
        let mut call = json!({ "index": index });
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        delta(&json!({ "tool_calls": [call] }))
    };
    let reply = Reply::stream([
        piece(0, json!({"id": "a", "type": "function", "function": {"name": "look", "arguments": ""}})),
        piece(1, json!({"id": "b", "function": {"name": "look"}})),
        piece(0, json!({"function": {"arguments": "{\"where\":\"Os"}})),
        piece(1, json!({"function": {"arguments": "{\"where\":\"Lag"}})),
        piece(0, json!({"function": {"arguments": "lo\"}"}})),
        piece(1, json!({"id": null, "function": {"name": null, "arguments": "os\"}"}})),
        finish("tool_calls"),
    ])
    .done()
    .cut(5);
    let endpoint = Endpoint::new([reply, Reply::says("Seen.")]).await;
    let mut stage = stage().await;
    let look = |arguments: Arguments| async move {
        Ok::<_, String>(format!("rain in {}", arguments.words("where")))
    };
    let look = Tool::new("look", "Looks at the sky.", r#"{"type":"object"}"#, look)
        .says(|call| format!("Looking at the sky over {}.", call.words("where")));
    let (reply, heard) = heard(&agent(&endpoint).tool(look), &mut stage).await;
    assert_eq!(reply.unwrap().calls.len(), 2);
    let messages = endpoint.asked()[1].body["messages"].clone();
    assert_eq!(
        (&messages[3]["tool_call_id"], &messages[3]["content"]),
        (&json!("a"), &json!("rain in Oslo"))
    );
    assert_eq!(
        (&messages[4]["tool_call_id"], &messages[4]["content"]),
        (&json!("b"), &json!("rain in Lagos"))
    );
    let invoked: Vec<_> = heard.iter().filter(|event| event["type"] == "aaep:agent.tool.invoked").collect();
    assert_eq!(invoked[0]["summary_normal"], "Looking at the sky over Oslo.");
}

#[tokio::test]
async fn a_tool_that_does_not_exist_is_told_to_all() {
    let endpoint = Endpoint::new([Reply::calls("fly to the moon", "{}"), Reply::says("I cannot.")]).await;
    let mut stage = stage().await;
    let (reply, heard) = heard(&agent(&endpoint), &mut stage).await;
    assert_eq!(reply.unwrap().calls[0].outcome, Outcome::Unknown);
    let says = heard.iter().filter_map(|event| event["summary_normal"].as_str());
    assert!(says.clone().any(|says| says.contains("fly to the moon") && says.contains("does not exist")));
    assert!(!told(&heard).contains(&"tool.invoked".to_owned()));
    assert!(endpoint.asked()[1].last()["content"].as_str().unwrap().starts_with("There is no tool called"));
}

#[tokio::test]
async fn arguments_that_cannot_be_used_run_nothing() {
    for bad in ["{", "[]", "5", r#""to""#, r#"{"to":"Ben","to":"Eve"}"#, r#"{"euro":9007199254740993}"#] {
        let endpoint = Endpoint::new([Reply::calls("send", bad), Reply::says("Sorry.")]).await;
        let mut stage = stage().await;
        let sent = Arc::new(AtomicUsize::new(0));
        let (reply, heard) = heard(&agent(&endpoint).tool(sending(&sent)), &mut stage).await;
        let reply = reply.unwrap();
        assert!(matches!(reply.calls[0].outcome, Outcome::BadArguments(_)), "{bad}: {reply:?}");
        assert_eq!(sent.load(Ordering::SeqCst), 0);
        let says = heard.iter().filter_map(|event| event["summary_normal"].as_str());
        assert!(says.clone().any(|says| says.contains("cannot be used. Nothing was done")), "{bad}");
        assert!(endpoint.asked()[1].last()["content"].as_str().unwrap().contains("cannot be used"));
    }
}

/// A tool, what comes of it, and the status that listeners hear.
async fn ends(tool: Tool, status: &str) -> (Outcome, String) {
    let endpoint = Endpoint::new([Reply::calls("odd", "{}"), Reply::says("So be it.")]).await;
    let mut stage = stage().await;
    let (reply, heard) = heard(&agent(&endpoint).tool(tool), &mut stage).await;
    let ended: Vec<_> = heard.iter().filter_map(|event| event["status"].as_str()).collect();
    assert_eq!(ended, [status]);
    let content = endpoint.asked()[1].last()["content"].as_str().unwrap().to_owned();
    (reply.unwrap().calls.remove(0).outcome, content)
}

const ANY: &str = r#"{"type":"object"}"#;

#[tokio::test]
async fn tools_that_do_not_work_are_told() {
    let fails = Tool::new("odd", "", ANY, async |_| Err::<String, _>("no such account"));
    assert_eq!(ends(fails, "error").await.0, Outcome::Failed("no such account".to_owned()));
    let breaks = Tool::new("odd", "", ANY, |_| async {
        assert!(std::env::args().count() == 0, "on purpose");
        Ok::<_, String>("never")
    });
    assert_eq!(ends(breaks, "error").await.0, Outcome::Panicked);
    let hangs = Tool::new("odd", "", ANY, |_| std::future::pending::<Result<String, String>>());
    let (outcome, content) = ends(hangs.within(Duration::from_millis(1)), "timeout").await;
    assert_eq!((outcome, content.as_str()), (Outcome::TimedOut, "The tool did not work: it took too long."));
    let no_text = Tool::new("odd", "", ANY, async |_| Ok::<_, String>(vec![0xff_u8, 0xfe]));
    assert_eq!(ends(no_text, "error").await.0, Outcome::Failed("its result is no text".to_owned()));
    let large = Tool::new("odd", "", ANY, async |_| Ok::<_, String>("é".repeat(25_000_000)));
    let (outcome, content) = ends(large, "success").await;
    assert_eq!(outcome, Outcome::Done);
    assert!(
        content.len() < 70_000 && content.ends_with("[Cut here: this is the beginning of 50000000 bytes.]")
    );
}

#[tokio::test]
async fn words_too_long_to_be_asked_are_not_done() {
    let arguments = json!({"to": "x".repeat(100_000), "euro": 5}).to_string();
    let endpoint = Endpoint::new([Reply::calls("send", &arguments), Reply::says("Sorry.")]).await;
    let mut stage = stage().await;
    let sent = Arc::new(AtomicUsize::new(0));
    let (reply, _) = heard(&agent(&endpoint).tool(sending(&sent)), &mut stage).await;
    assert!(matches!(reply.unwrap().calls[0].outcome, Outcome::NotTold(_)));
    assert_eq!(sent.load(Ordering::SeqCst), 0);
}

/// Tells when it is dropped.
struct Told(tokio::sync::mpsc::UnboundedSender<()>);

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[tokio::test]
async fn the_persons_stop_ends_the_loop_wherever_it_is() {
    let (tell, mut dropped) = tokio::sync::mpsc::unbounded_channel();
    let hangs = Tool::new("odd", "", ANY, move |_| {
        let told = Told(tell.clone());
        async move {
            let _told = told;
            std::future::pending::<Result<String, String>>().await
        }
    });
    // Nothing but the stop ends it in time.
    let hour = Duration::from_hours(1);
    let limits = Limits { tool_time: hour, stall: hour, ..Limits::default() };
    let stalls = Reply::stream([text("Once upon a time. It was")]).then(Then::Stall);
    for (reply, wait) in [(Reply::calls("odd", "{}"), "tool.invoked"), (stalls, "output.streaming")] {
        let endpoint = Endpoint::new([reply]).await;
        let mut stage = stage().await;
        let agent = agent(&endpoint).tool(hangs.clone()).limits(limits.clone());
        let hub = stage.hub.clone();
        let stopping = async {
            let heard = stage.person.hears_until(wait).await;
            let session = heard[0]["session_id"].as_str().unwrap().to_owned();
            stage.person.stops(&session).await;
            until_the_end(&mut stage).await
        };
        let running = tokio::time::timeout(PATIENCE, agent.run(&hub, "Pay Ben."));
        let (reply, heard) = tokio::join!(running, stopping);
        let error = reply.expect("the stop is noticed").unwrap_err();
        assert_eq!(error, Error::Session(sayso::Error::Stopped(Stop::Person)));
        assert_eq!(heard.last().unwrap()["cancelled_by"], "user");
    }
    tokio::time::timeout(PATIENCE, dropped.recv()).await.expect("the tool is dropped");
}

#[tokio::test]
async fn names_come_whole_again_or_in_pieces() {
    let piece = |name: &str, arguments: &str| {
        delta(
            &json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": name, "arguments": arguments}}]}),
        )
    };
    let again = [piece("look", "{"), piece("look", "}"), finish("tool_calls")];
    let pieces = [piece("lo", "{"), piece("ok", "}"), finish("tool_calls")];
    for events in [again, pieces] {
        let endpoint = Endpoint::new([Reply::stream(events).done(), Reply::says("Seen.")]).await;
        let mut stage = stage().await;
        let look = Tool::new("look", "Looks.", ANY, async |_| Ok::<_, String>("rain"));
        let (reply, _) = heard(&agent(&endpoint).tool(look), &mut stage).await;
        assert_eq!(reply.unwrap().calls[0].outcome, Outcome::Done);
    }
}
