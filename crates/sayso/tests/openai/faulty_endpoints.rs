//! Endpoints that fail or misbehave: the agent's code gets a typed error, and listeners receive a matching event.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use sayso::openai::{ChatAgent, ChatError, LoopLimits, Tool};
use serde_json::{Value, json};

use crate::openai::{
    KEY, agent, assert_key_is_hidden, embedded_fixture, output, run_and_listen, send_money_tool,
};
use crate::support::endpoint::{AfterReply, Endpoint, ScriptedReply, finish, text};

/// Runs an agent against an endpoint with these replies. Returns the error, the last event and the output.
async fn run_to_error(
    replies: impl IntoIterator<Item = ScriptedReply>,
    limits: LoopLimits,
) -> (ChatError, Value, String) {
    let endpoint = Endpoint::new(replies).await;
    let mut fixture = embedded_fixture().await;
    let agent = agent(&endpoint).limits(limits);
    assert!(!format!("{agent:?}").contains(KEY));
    let (result, events) = run_and_listen(&agent, &mut fixture).await;
    assert_key_is_hidden(&events);
    let error = result.unwrap_err();
    assert!(!error.to_string().contains(KEY) && !format!("{error:?}").contains(KEY), "{error}");
    let last = events.last().unwrap().clone();
    assert_eq!(last["type"], "aaep:agent.session.errored");
    // An output that has started is completed first.
    let last_chunk = events.iter().rfind(|event| event["chunk"].is_string());
    assert!(last_chunk.is_none_or(|chunk| chunk["complete"] == true), "{events:?}");
    (error, last, output(&events))
}

/// Limits without retries.
fn single_attempt_limits() -> LoopLimits {
    LoopLimits { max_attempts: 1, ..LoopLimits::default() }
}

#[tokio::test]
async fn a_stalled_endpoint_times_out() {
    let partial = ScriptedReply::stream([text("It is ")]).and_then(AfterReply::Stall);
    // Long enough for the first chunk to arrive on any machine.
    let limits = LoopLimits { stall_timeout: Duration::from_secs(3), ..single_attempt_limits() };
    let (error, last, output) = run_to_error([partial], limits).await;
    assert_eq!((error, output.as_str()), (ChatError::Stalled, "It is "));
    assert_eq!(
        (&last["error_code"], &last["error_category"]),
        (&json!("MODEL_STALLED"), &json!("transient"))
    );
    for silent in [ScriptedReply::stream([]), ScriptedReply::with_raw_head("")] {
        let limits = LoopLimits { first_byte_timeout: Duration::from_millis(300), ..single_attempt_limits() };
        let (error, last, _) = run_to_error([silent.and_then(AfterReply::Stall)], limits).await;
        assert_eq!((error, &last["error_code"]), (ChatError::ResponseTimeout, &json!("MODEL_SILENT")));
    }
}

#[tokio::test]
async fn an_answer_that_ends_early_is_an_error() {
    for reply in [
        ScriptedReply::stream([text("It is ")]).and_then(AfterReply::Close),
        ScriptedReply::stream([text("It is ")]),
    ] {
        let (error, last, output) = run_to_error([reply], single_attempt_limits()).await;
        assert_eq!((error, output.as_str()), (ChatError::ConnectionLost, "It is "));
        assert_eq!(last["error_code"], "MODEL_CUT_OFF");
    }
}

#[tokio::test]
async fn a_malformed_answer_is_reported() {
    let reply_with_bad_chunk = |bytes: &[u8]| {
        let good = format!("data: {}\n\n", text("It is "));
        ScriptedReply::raw([good.into_bytes(), bytes.to_vec()])
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
        let (error, last, output) = run_to_error([reply_with_bad_chunk(bad)], single_attempt_limits()).await;
        assert!(matches!(error, ChatError::Malformed(_)), "{error:?}");
        assert_eq!((&last["error_code"], output.as_str()), (&json!("MODEL_MALFORMED"), "It is "));
    }
}

#[tokio::test]
async fn an_error_event_in_the_stream_is_passed_on() {
    let reply =
        ScriptedReply::stream([text("It is "), json!({"error": {"message": format!("overloaded, {KEY}")}})]);
    let (error, last, _) = run_to_error([reply], single_attempt_limits()).await;
    assert_eq!(error, ChatError::EndpointError { status: None, message: "overloaded, [key].".to_owned() });
    assert_eq!(last["error_code"], "MODEL_ERROR");
}

#[tokio::test]
async fn an_endpoint_error_is_reported_in_one_sentence() {
    let body = format!(r#"{{"error":{{"message":"Incorrect key {KEY}.","code":"invalid_api_key"}}}}"#);
    for (status, category) in
        [(401, "requires_user"), (404, "permanent"), (500, "transient"), (302, "permanent")]
    {
        let (error, last, _) = run_to_error(
            [ScriptedReply::status(status, "application/json", "", &body)],
            single_attempt_limits(),
        )
        .await;
        assert_eq!(
            error,
            ChatError::EndpointError { status: Some(status), message: "Incorrect key [key].".to_owned() }
        );
        assert_eq!((&last["error_code"], &last["error_category"]), (&json!("MODEL_ERROR"), &json!(category)));
        assert_eq!(last["summary_normal"], "The model's service returned an error: Incorrect key [key].");
    }
}

#[tokio::test]
async fn attempts_and_retry_delays_are_bounded() {
    let busy = |after: &str| ScriptedReply::status(429, "text/plain", after, "slow down");
    for (retry_after, attempts) in [("retry-after: 0\r\n", 3), ("retry-after: 3600\r\n", 1)] {
        let endpoint = Endpoint::new([busy(retry_after)]).await;
        let mut fixture = embedded_fixture().await;
        let (result, _) = run_and_listen(&agent(&endpoint), &mut fixture).await;
        assert!(matches!(result, Err(ChatError::EndpointError { status: Some(429), .. })));
        assert_eq!(endpoint.requests().len(), attempts);
    }
    // A request is never retried once its answer has started.
    let endpoint = Endpoint::new([
        ScriptedReply::stream([text("It is ")]).and_then(AfterReply::Close),
        ScriptedReply::from_text("No."),
    ])
    .await;
    let mut fixture = embedded_fixture().await;
    assert_eq!(run_and_listen(&agent(&endpoint), &mut fixture).await.0, Err(ChatError::ConnectionLost));
    assert_eq!(endpoint.requests().len(), 1);
}

#[tokio::test]
async fn an_answer_that_is_not_an_event_stream_is_refused() {
    let page = ScriptedReply::status(200, "text/html", "", "<h1>Sign in</h1>");
    let (error, last, _) = run_to_error([page], single_attempt_limits()).await;
    assert!(
        matches!(&error, ChatError::Malformed(reason) if reason.to_string().contains("text/html")),
        "{error:?}"
    );
    assert_eq!(last["error_code"], "MODEL_MALFORMED");
    let (error, last, _) = run_to_error(
        [ScriptedReply::with_raw_head("SSH-2.0-OpenSSH_9.2\r\n\r\n").and_then(AfterReply::Close)],
        single_attempt_limits(),
    )
    .await;
    assert!(
        matches!(&error, ChatError::Malformed(reason) if reason.to_string().contains("not HTTP")),
        "{error:?}"
    );
    assert_eq!(last["error_code"], "MODEL_MALFORMED");
    let (error, ..) =
        run_to_error([ScriptedReply::with_raw_head("").and_then(AfterReply::Close)], single_attempt_limits())
            .await;
    assert!(matches!(error, ChatError::Unreachable(_)), "{error:?}");
}

#[tokio::test]
async fn an_answer_beyond_a_limit_is_refused() {
    let endless = ScriptedReply::raw([vec![b'x'; 64 * 1024]]).and_then(AfterReply::Repeat);
    let (error, last, _) = run_to_error([endless], single_attempt_limits()).await;
    assert_eq!(
        (error, &last["error_code"]),
        (ChatError::LimitReached("bytes in one line"), &json!("MODEL_RESPONSE_TOO_LARGE"))
    );
    // Endless comments, up to the byte limit of one answer.
    let comments = ScriptedReply::raw([b": nothing\n".repeat(6000)]).and_then(AfterReply::Repeat);
    assert_eq!(
        run_to_error([comments], single_attempt_limits()).await.0,
        ChatError::LimitReached("bytes in one answer")
    );
    let calls =
        (0..33).map(|index| json!({"index": index, "id": format!("c{index}"), "function": {"name": "send"}}));
    let calls = crate::support::endpoint::delta(&json!({ "tool_calls": calls.collect::<Vec<_>>() }));
    let many = ScriptedReply::stream([calls, finish("tool_calls")]).with_done_marker();
    assert_eq!(
        run_to_error([many], single_attempt_limits()).await.0,
        ChatError::LimitReached("tool calls in one answer")
    );
}

#[tokio::test]
async fn endless_tool_calls_are_stopped() {
    let endpoint = Endpoint::new([ScriptedReply::from_tool_call("look", "{}")]).await;
    let mut fixture = embedded_fixture().await;
    let look = Tool::new("look", "Looks.", r#"{"type":"object"}"#, async |_| Ok::<_, String>("nothing"));
    let (result, events) = run_and_listen(&agent(&endpoint).tool(look), &mut fixture).await;
    assert_eq!(result, Err(ChatError::TooManyRounds(16)));
    assert_eq!(endpoint.requests().len(), 16);
    assert_eq!(events.last().unwrap()["error_code"], "MODEL_TOO_MANY_ROUNDS");
}

#[tokio::test]
async fn an_invalid_setup_sends_no_request() {
    let sent = Arc::new(AtomicUsize::new(0));
    let schema = r#"{"type":"object"}"#;
    let tool_with = |name: &str, schema: &str| Tool::new(name, "", schema, async |_| Ok::<_, String>(""));
    for agent in [
        ChatAgent::new("api.openai.com"),
        ChatAgent::new("http://127.0.0.1:9/v1").tool(send_money_tool(&sent)).tool(send_money_tool(&sent)),
        ChatAgent::new("http://127.0.0.1:9/v1").tool(tool_with("send money", schema)),
        ChatAgent::new("http://127.0.0.1:9/v1").tool(tool_with("send", "[]")),
        ChatAgent::new("http://127.0.0.1:9/v1").api_key("two\nlines"),
        ChatAgent::new("http://127.0.0.1:9/v1").parameter("stream", "false"),
        ChatAgent::new("http://127.0.0.1:9/v1").parameter("temperature", "hot"),
    ] {
        let mut fixture = embedded_fixture().await;
        let (result, events) = run_and_listen(&agent, &mut fixture).await;
        assert!(matches!(result, Err(ChatError::Setup(_))), "{result:?}");
        assert_eq!(events.last().unwrap()["error_code"], "AGENT_SETUP");
    }
}

#[tokio::test]
async fn an_unreachable_endpoint_is_reported() {
    let mut fixture = embedded_fixture().await;
    // Nothing is listening on this port.
    let (result, events) = run_and_listen(
        &ChatAgent::new("http://127.0.0.1:1/v1").limits(single_attempt_limits()),
        &mut fixture,
    )
    .await;
    assert!(matches!(result, Err(ChatError::Unreachable(_))), "{result:?}");
    assert_eq!(events.last().unwrap()["error_code"], "MODEL_UNREACHABLE");
}
