//! Endpoints that do as they should, however they cut it.

use serde_json::json;

use crate::openai::{KEY, agent, heard, is_kept_secret, output, stage};
use crate::support::endpoint::{Endpoint, Reply, delta, finish, text};
use crate::support::stage::told;

#[tokio::test]
async fn an_answer_is_heard_as_it_comes() {
    let endpoint = Endpoint::new([Reply::says("Ben is paid. All is well.")]).await;
    let mut stage = stage().await;
    let agent = agent(&endpoint).parameter("temperature", "0.5").parameter("stop", r#"["."]"#);
    let (reply, heard) = heard(&agent, &mut stage).await;
    let reply = reply.unwrap();
    assert_eq!((reply.text.as_str(), reply.rounds, reply.cut), ("Ben is paid. All is well.", 1, false));
    assert_eq!(output(&heard), "Ben is paid. All is well.");
    let mut kinds = told(&heard);
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
    is_kept_secret(&heard);
    let asked = endpoint.asked();
    assert!(asked[0].head.starts_with("POST /v1/chat/completions HTTP/1.1"), "{}", asked[0].head);
    assert!(asked[0].head.contains(&format!("Bearer {KEY}")));
    assert_eq!(
        asked[0].body,
        json!({"model": "test-model", "stream": true, "temperature": 0.5, "stop": ["."], "messages": [
            {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Pay Ben."},
        ]})
    );
}

#[tokio::test]
async fn it_does_not_matter_where_an_answer_is_cut() {
    let words = "Ünïcödé: 😀 and “quotes”, né?";
    for every in [1, 2, 3, 7, 1000] {
        for end in ["\n", "\r\n", "\r"] {
            let reply = Reply::says(words).lines_end(end).cut(every);
            let endpoint = Endpoint::new([reply]).await;
            let mut stage = stage().await;
            let (reply, heard) = heard(&agent(&endpoint), &mut stage).await;
            assert_eq!(reply.unwrap().text, words, "{every} {end:?}");
            assert_eq!(output(&heard), words, "{every} {end:?}");
        }
    }
}

#[tokio::test]
async fn what_endpoints_add_or_leave_out_does_no_harm() {
    let events = [
        json!({"choices": [], "prompt_filter_results": []}),
        delta(&json!({"role": "assistant", "content": null, "reasoning_content": "hm", "tool_calls": null})),
        text("Good "),
        text("morning."),
        finish("stop"),
        json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}),
    ];
    // With and without the last word, and with comments between.
    let with = Reply::stream(events.clone()).done();
    let without = Reply::stream(events.clone());
    let mut pieces = vec![b": still there\n\n".to_vec(), b"event: chunk\nid: 1\nretry: 5\n".to_vec()];
    pieces.extend(events.iter().map(|event| format!("data:{event}\n\n").into_bytes()));
    let last = pieces.last_mut().unwrap();
    last.truncate(last.len() - 2);
    for reply in [with, without, Reply::raw(pieces)] {
        let endpoint = Endpoint::new([reply]).await;
        let mut stage = stage().await;
        let (reply, heard) = heard(&agent(&endpoint), &mut stage).await;
        assert_eq!(reply.unwrap().text, "Good morning.");
        assert_eq!(output(&heard), "Good morning.");
    }
}

#[tokio::test]
async fn an_answer_without_room_is_said_to_be_cut() {
    for reason in ["length", "content_filter"] {
        let endpoint = Endpoint::new([Reply::stream([text("It is "), finish(reason)]).done()]).await;
        let mut stage = stage().await;
        let (reply, heard) = heard(&agent(&endpoint), &mut stage).await;
        assert!(reply.unwrap().cut);
        let last = heard.last().unwrap()["summary_normal"].as_str().unwrap().to_owned();
        assert!(last.contains("not whole"), "{last}");
    }
}

#[tokio::test]
async fn a_busy_endpoint_is_asked_again() {
    let busy =
        Reply::status(429, "application/json", "retry-after: 0\r\n", r#"{"error":{"message":"slow down"}}"#);
    let broken = Reply::status(503, "text/plain", "retry-after: 0\r\n", "down");
    let endpoint = Endpoint::new([busy, broken, Reply::says("Here I am.")]).await;
    let mut stage = stage().await;
    let (reply, heard) = heard(&agent(&endpoint), &mut stage).await;
    assert_eq!(reply.unwrap().text, "Here I am.");
    assert_eq!(endpoint.asked().len(), 3);
    let again = heard
        .iter()
        .filter(|event| event["summary_normal"].as_str().is_some_and(|says| says.contains("again")));
    assert_eq!(again.count(), 2);
}
