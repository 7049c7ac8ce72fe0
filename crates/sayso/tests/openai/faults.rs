//! Endpoints that do as they should not: the author gets a typed error, the listener an honest event.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use sayso::openai::{Agent, Error, Limits, Tool};
use serde_json::{Value, json};

use crate::openai::{KEY, agent, heard, is_kept_secret, output, sending, stage};
use crate::support::endpoint::{Endpoint, Reply, Then, finish, text};

/// Runs against these answers, and gives the error and the last event.
async fn fails(replies: impl IntoIterator<Item = Reply>, limits: Limits) -> (Error, Value, String) {
    let endpoint = Endpoint::new(replies).await;
    let mut stage = stage().await;
    let agent = agent(&endpoint).limits(limits);
    assert!(!format!("{agent:?}").contains(KEY));
    let (came, heard) = heard(&agent, &mut stage).await;
    is_kept_secret(&heard);
    let error = came.unwrap_err();
    assert!(!error.to_string().contains(KEY) && !format!("{error:?}").contains(KEY), "{error}");
    let last = heard.last().unwrap().clone();
    assert_eq!(last["type"], "aaep:agent.session.errored");
    // Whatever was begun is ended before.
    let chunks = heard.iter().rfind(|event| event["chunk"].is_string());
    assert!(chunks.is_none_or(|chunk| chunk["complete"] == true), "{heard:?}");
    (error, last, output(&heard))
}

/// Nothing is tried again.
fn once() -> Limits {
    Limits { attempts: 1, ..Limits::default() }
}

#[tokio::test]
async fn an_endpoint_that_stalls_is_not_waited_for() {
    let begun = Reply::stream([text("It is ")]).then(Then::Stall);
    // So long that what is sent comes in time on any machine.
    let limits = Limits { stall: Duration::from_secs(3), ..once() };
    let (error, last, output) = fails([begun], limits).await;
    assert_eq!((error, output.as_str()), (Error::Stalled, "It is "));
    assert_eq!(
        (&last["error_code"], &last["error_category"]),
        (&json!("MODEL_STALLED"), &json!("transient"))
    );
    for silent in [Reply::stream([]), Reply::nonsense("")] {
        let limits = Limits { first_byte: Duration::from_millis(300), ..once() };
        let (error, last, _) = fails([silent.then(Then::Stall)], limits).await;
        assert_eq!((error, &last["error_code"]), (Error::Silent, &json!("MODEL_SILENT")));
    }
}

#[tokio::test]
async fn an_answer_that_ends_too_early_is_not_whole() {
    for reply in [Reply::stream([text("It is ")]).then(Then::Close), Reply::stream([text("It is ")])] {
        let (error, last, output) = fails([reply], once()).await;
        assert_eq!((error, output.as_str()), (Error::CutOff, "It is "));
        assert_eq!(last["error_code"], "MODEL_CUT_OFF");
    }
}

#[tokio::test]
async fn what_is_malformed_is_said_to_be() {
    let pieces = |bytes: &[u8]| {
        let good = format!("data: {}\n\n", text("It is "));
        Reply::raw([good.into_bytes(), bytes.to_vec()])
    };
    for bad in [
        &b"data: {\"choices\":[{\"delta\":{\"content\":\n\n"[..],
        b"data: nonsense\n\n",
        b"data: []\n\n",
        b"data: {\"choices\":{}}\n\n",
        b"data: {\"choices\":[{\"delta\":{\"content\":[1]}}]}\n\n",
        b"data: {\"choices\":[{\"delta\":{\"tool_calls\":\"send\"}}]}\n\n",
        b"data: \xff\xfe\n\n",
    ] {
        let (error, last, output) = fails([pieces(bad)], once()).await;
        assert!(matches!(error, Error::Malformed(_)), "{error:?}");
        assert_eq!((&last["error_code"], output.as_str()), (&json!("MODEL_MALFORMED"), "It is "));
    }
}

#[tokio::test]
async fn an_error_in_the_middle_is_passed_on() {
    let reply = Reply::stream([text("It is "), json!({"error": {"message": format!("overloaded, {KEY}")}})]);
    let (error, last, _) = fails([reply], once()).await;
    assert_eq!(error, Error::Refused { status: None, says: "overloaded, [key].".to_owned() });
    assert_eq!(last["error_code"], "MODEL_REFUSED");
}

#[tokio::test]
async fn a_refusal_is_told_in_one_sentence() {
    let says = format!(r#"{{"error":{{"message":"Incorrect key {KEY}.","code":"invalid_api_key"}}}}"#);
    for (status, category) in
        [(401, "requires_user"), (404, "permanent"), (500, "transient"), (302, "permanent")]
    {
        let (error, last, _) = fails([Reply::status(status, "application/json", "", &says)], once()).await;
        assert_eq!(error, Error::Refused { status: Some(status), says: "Incorrect key [key].".to_owned() });
        assert_eq!(
            (&last["error_code"], &last["error_category"]),
            (&json!("MODEL_REFUSED"), &json!(category))
        );
        assert_eq!(last["summary_normal"], "The model's service refused: Incorrect key [key].");
    }
}

#[tokio::test]
async fn attempts_and_pauses_are_bounded() {
    let busy = |after: &str| Reply::status(429, "text/plain", after, "slow down");
    for (after, times) in [("retry-after: 0\r\n", 3), ("retry-after: 3600\r\n", 1)] {
        let endpoint = Endpoint::new([busy(after)]).await;
        let mut stage = stage().await;
        let (came, _) = heard(&agent(&endpoint), &mut stage).await;
        assert!(matches!(came, Err(Error::Refused { status: Some(429), .. })));
        assert_eq!(endpoint.asked().len(), times);
    }
    // An answer that has begun is never asked for again.
    let endpoint =
        Endpoint::new([Reply::stream([text("It is ")]).then(Then::Close), Reply::says("No.")]).await;
    let mut stage = stage().await;
    assert_eq!(heard(&agent(&endpoint), &mut stage).await.0, Err(Error::CutOff));
    assert_eq!(endpoint.asked().len(), 1);
}

#[tokio::test]
async fn another_kind_of_answer_is_refused() {
    let page = Reply::status(200, "text/html", "", "<h1>Sign in</h1>");
    let (error, last, _) = fails([page], once()).await;
    assert!(matches!(&error, Error::Malformed(why) if why.to_string().contains("text/html")), "{error:?}");
    assert_eq!(last["error_code"], "MODEL_MALFORMED");
    let (error, last, _) =
        fails([Reply::nonsense("SSH-2.0-OpenSSH_9.2\r\n\r\n").then(Then::Close)], once()).await;
    assert!(matches!(&error, Error::Malformed(why) if why.to_string().contains("not HTTP")), "{error:?}");
    assert_eq!(last["error_code"], "MODEL_MALFORMED");
    let (error, ..) = fails([Reply::nonsense("").then(Then::Close)], once()).await;
    assert!(matches!(error, Error::Unreachable(_)), "{error:?}");
}

#[tokio::test]
async fn more_than_is_taken_ends_it() {
    let endless = Reply::raw([vec![b'x'; 64 * 1024]]).then(Then::Repeat);
    let (error, last, _) = fails([endless], once()).await;
    assert_eq!((error, &last["error_code"]), (Error::TooMuch("bytes of a line"), &json!("MODEL_TOO_MUCH")));
    // Fifty megabytes of lines that mean nothing.
    let comments = Reply::raw([b": nothing\n".repeat(6000)]).then(Then::Repeat);
    assert_eq!(fails([comments], once()).await.0, Error::TooMuch("bytes of an answer"));
    let calls =
        (0..33).map(|index| json!({"index": index, "id": format!("c{index}"), "function": {"name": "send"}}));
    let calls = crate::support::endpoint::delta(&json!({ "tool_calls": calls.collect::<Vec<_>>() }));
    let many = Reply::stream([calls, finish("tool_calls")]).done();
    assert_eq!(fails([many], once()).await.0, Error::TooMuch("calls of tools in one answer"));
}

#[tokio::test]
async fn a_model_that_never_stops_calling_is_stopped() {
    let endpoint = Endpoint::new([Reply::calls("look", "{}")]).await;
    let mut stage = stage().await;
    let look = Tool::new("look", "Looks.", r#"{"type":"object"}"#, async |_| Ok::<_, String>("nothing"));
    let (came, heard) = heard(&agent(&endpoint).tool(look), &mut stage).await;
    assert_eq!(came, Err(Error::TooManyRounds(16)));
    assert_eq!(endpoint.asked().len(), 16);
    assert_eq!(heard.last().unwrap()["error_code"], "MODEL_TOO_MANY_ROUNDS");
}

#[tokio::test]
async fn what_is_not_set_up_is_not_sent() {
    let sent = Arc::new(AtomicUsize::new(0));
    let schema = r#"{"type":"object"}"#;
    let odd = |name: &str, schema: &str| Tool::new(name, "", schema, async |_| Ok::<_, String>(""));
    for agent in [
        Agent::new("api.openai.com"),
        Agent::new("http://127.0.0.1:9/v1").tool(sending(&sent)).tool(sending(&sent)),
        Agent::new("http://127.0.0.1:9/v1").tool(odd("send money", schema)),
        Agent::new("http://127.0.0.1:9/v1").tool(odd("send", "[]")),
        Agent::new("http://127.0.0.1:9/v1").key("two\nlines"),
        Agent::new("http://127.0.0.1:9/v1").parameter("stream", "false"),
        Agent::new("http://127.0.0.1:9/v1").parameter("temperature", "hot"),
    ] {
        let mut stage = stage().await;
        let (came, heard) = heard(&agent, &mut stage).await;
        assert!(matches!(came, Err(Error::Setup(_))), "{came:?}");
        assert_eq!(heard.last().unwrap()["error_code"], "AGENT_SETUP");
    }
}

#[tokio::test]
async fn nobody_there_is_told() {
    let mut stage = stage().await;
    // A port that the system hands out to nobody.
    let (came, heard) = heard(&Agent::new("http://127.0.0.1:1/v1").limits(once()), &mut stage).await;
    assert!(matches!(came, Err(Error::Unreachable(_))), "{came:?}");
    assert_eq!(heard.last().unwrap()["error_code"], "MODEL_UNREACHABLE");
}
