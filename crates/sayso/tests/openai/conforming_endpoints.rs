//! Endpoints that conform to the chat completions API, however they split their replies.

use serde_json::{Value, json};

use crate::openai::{KEY, agent, assert_key_is_hidden, embedded_fixture, output, run_and_listen};
use crate::support::endpoint::{Endpoint, ScriptedReply, delta, finish, text};
use crate::support::fixture::event_kinds;

#[tokio::test]
async fn an_answer_is_streamed_to_listeners() {
    let endpoint = Endpoint::new([ScriptedReply::from_text("Ben is paid. All is well.")]).await;
    let mut fixture = embedded_fixture().await;
    let agent = agent(&endpoint).parameter("temperature", "0.5").parameter("stop", r#"["."]"#);
    let (reply, events) = run_and_listen(&agent, &mut fixture).await;
    let reply = reply.unwrap();
    assert_eq!(
        (reply.text.as_str(), reply.rounds, reply.is_truncated),
        ("Ben is paid. All is well.", 1, false)
    );
    assert_eq!(output(&events), "Ben is paid. All is well.");
    let is_labelled = |event: &Value| {
        event["content_type"] == "text/markdown" || event["chunk"].as_str().is_none_or(str::is_empty)
    };
    assert!(events.iter().all(is_labelled), "models write Markdown: {events:?}");
    let mut kinds = event_kinds(&events);
    kinds.dedup();
    assert_eq!(
        kinds,
        [
            "session.started",
            "thinking",
            "writing_output",
            "output.streaming",
            "thinking",
            "session.completed"
        ]
    );
    assert_key_is_hidden(&events);
    let requests = endpoint.requests();
    assert!(requests[0].head.starts_with("POST /v1/chat/completions HTTP/1.1"), "{}", requests[0].head);
    assert!(requests[0].head.contains(&format!("Bearer {KEY}")));
    assert_eq!(
        requests[0].body,
        json!({"model": "test-model", "stream": true, "temperature": 0.5, "stop": ["."], "messages": [
            {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Pay Ben."},
        ]})
    );
}

#[tokio::test]
async fn an_answer_may_be_split_anywhere() {
    let expected = "Ünïcödé: 😀 and “quotes”, né?";
    for piece_len in [1, 2, 3, 7, 1000] {
        for line_ending in ["\n", "\r\n", "\r"] {
            let reply =
                ScriptedReply::from_text(expected).with_line_ending(line_ending).split_every(piece_len);
            let endpoint = Endpoint::new([reply]).await;
            let mut fixture = embedded_fixture().await;
            let (reply, events) = run_and_listen(&agent(&endpoint), &mut fixture).await;
            assert_eq!(reply.unwrap().text, expected, "{piece_len} {line_ending:?}");
            assert_eq!(output(&events), expected, "{piece_len} {line_ending:?}");
        }
    }
}

#[tokio::test]
async fn unknown_fields_and_missing_markers_are_tolerated() {
    let events = [
        json!({"choices": [], "prompt_filter_results": []}),
        delta(&json!({"role": "assistant", "content": null, "reasoning_content": "hm", "tool_calls": null})),
        text("Good "),
        text("morning."),
        finish("stop"),
        json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}),
    ];
    let with_marker = ScriptedReply::stream(events.clone()).with_done_marker();
    let without_marker = ScriptedReply::stream(events.clone());
    // This reply starts with a comment and with fields that are ignored, and its last event lacks the blank line.
    let mut chunks = vec![b": still there\n\n".to_vec(), b"event: chunk\nid: 1\nretry: 5\n".to_vec()];
    chunks.extend(events.iter().map(|event| format!("data:{event}\n\n").into_bytes()));
    let last = chunks.last_mut().unwrap();
    last.truncate(last.len() - 2);
    for reply in [with_marker, without_marker, ScriptedReply::raw(chunks)] {
        let endpoint = Endpoint::new([reply]).await;
        let mut fixture = embedded_fixture().await;
        let (reply, events) = run_and_listen(&agent(&endpoint), &mut fixture).await;
        assert_eq!(reply.unwrap().text, "Good morning.");
        assert_eq!(output(&events), "Good morning.");
    }
}

#[tokio::test]
async fn a_truncated_answer_is_reported_as_incomplete() {
    for reason in ["length", "content_filter"] {
        let endpoint =
            Endpoint::new([ScriptedReply::stream([text("It is "), finish(reason)]).with_done_marker()]).await;
        let mut fixture = embedded_fixture().await;
        let (reply, events) = run_and_listen(&agent(&endpoint), &mut fixture).await;
        assert!(reply.unwrap().is_truncated);
        let last = events.last().unwrap()["summary_normal"].as_str().unwrap().to_owned();
        assert!(last.contains("incomplete"), "{last}");
    }
}

#[tokio::test]
async fn a_busy_endpoint_is_retried() {
    let busy = ScriptedReply::status(
        429,
        "application/json",
        "retry-after: 0\r\n",
        r#"{"error":{"message":"slow down"}}"#,
    );
    let broken = ScriptedReply::status(503, "text/plain", "retry-after: 0\r\n", "down");
    let endpoint = Endpoint::new([busy, broken, ScriptedReply::from_text("Here I am.")]).await;
    let mut fixture = embedded_fixture().await;
    let (reply, events) = run_and_listen(&agent(&endpoint), &mut fixture).await;
    assert_eq!(reply.unwrap().text, "Here I am.");
    assert_eq!(endpoint.requests().len(), 3);
    let retries = events
        .iter()
        .filter(|event| event["summary_normal"].as_str().is_some_and(|summary| summary.contains("again")));
    assert_eq!(retries.count(), 2);
}
