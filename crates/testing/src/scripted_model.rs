//! A model server that follows a script, for tests with real coding agents. It speaks Anthropic's Messages API, OpenAI's
//! Responses API and chat completions, and Gemini's API, streamed and not.
//!
//! The prompt contains the script: `SCRIPT:` and a JSON array of steps. A step is `{"text": …}`, `{"tool": …, "input": …}` or
//! both. The number of tool results since the prompt selects the step, so the server keeps no state.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

/// Starts the server. Returns its address, without a path.
pub fn start() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                // A client that disconnects ends its thread.
                let _ = serve(&stream);
            });
        }
    });
    address
}

/// Returns a prompt with this script.
pub fn prompt(script: &Value) -> String {
    format!("SCRIPT:{script}")
}

/// The last message of a conversation, which selects the step of the script.
enum Turn {
    User(String),
    ToolResult,
}

fn serve(stream: &TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or_default().split('?').next().unwrap_or_default().to_owned();
    let (mut length, mut is_chunked) = (0, false);
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        is_chunked |= lower.starts_with("transfer-encoding:") && lower.contains("chunked");
    }
    let mut body = Vec::new();
    if is_chunked {
        loop {
            line.clear();
            reader.read_line(&mut line)?;
            let size = u64::from_str_radix(line.trim(), 16).unwrap_or(0);
            (&mut reader).take(size).read_to_end(&mut body)?;
            line.clear();
            reader.read_line(&mut line)?;
            if size == 0 {
                break;
            }
        }
    } else {
        (&mut reader).take(length).read_to_end(&mut body)?;
    }
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    respond(stream, &path, &request)
}

fn respond(mut stream: &TcpStream, path: &str, request: &Value) -> std::io::Result<()> {
    let is_streamed = request["stream"] == true || path.contains("stream");
    let (complete, events) = if path.ends_with("/count_tokens") {
        (json!({"input_tokens": 10}), Vec::new())
    } else if path.ends_with("/messages") {
        anthropic(request)
    } else if path.ends_with("/responses") {
        openai_responses(request)
    } else if path.ends_with("/chat/completions") {
        chat_completions(request)
    } else if path.ends_with(":countTokens") {
        (json!({"totalTokens": 10}), Vec::new())
    } else if path.contains("enerateContent") {
        let response = gemini(request);
        (response.clone(), vec![(None, response.to_string())])
    } else if path.contains("/models") {
        (
            json!({"object": "list", "data": [{"id": "scripted", "object": "model"}], "has_more": false}),
            Vec::new(),
        )
    } else {
        (json!({}), Vec::new())
    };
    if !is_streamed || events.is_empty() {
        let body = complete.to_string();
        return write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
    }
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")?;
    for (name, data) in events {
        if let Some(name) = name {
            writeln!(stream, "event: {name}")?;
        }
        write!(stream, "data: {data}\n\n")?;
    }
    Ok(())
}

/// Returns a number that was not returned before.
fn unique() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(text_of).collect::<Vec<_>>().join("\n"),
        Value::Object(_) => {
            content["text"].as_str().map_or_else(|| text_of(&content["content"]), str::to_owned)
        }
        _ => String::new(),
    }
}

/// Returns the step of the script that comes next. A request without tools is not part of the conversation.
fn next_step(turns: &[Turn], has_tools: bool) -> Value {
    let mut script = None;
    let mut results = 0;
    for turn in turns {
        match turn {
            Turn::ToolResult => results += 1,
            Turn::User(text) => {
                if let Some(found) = find_script(text) {
                    (script, results) = (Some(found), 0);
                }
            }
        }
    }
    let step = script.filter(|_| has_tools).and_then(|script| script.get(results).cloned());
    step.unwrap_or_else(|| json!({"text": "ok"}))
}

fn find_script(text: &str) -> Option<Vec<Value>> {
    let script = text.split_once("SCRIPT:")?.1;
    // opencode quotes its argument once more.
    [script.to_owned(), script.replace("\\\"", "\"")]
        .iter()
        .find_map(|script| serde_json::Deserializer::from_str(script).into_iter::<Vec<Value>>().next()?.ok())
}

type Events = Vec<(Option<&'static str>, String)>;

fn anthropic(request: &Value) -> (Value, Events) {
    let mut turns = Vec::new();
    for message in
        request["messages"].as_array().into_iter().flatten().filter(|message| message["role"] == "user")
    {
        match &message["content"] {
            Value::Array(parts) => {
                for part in parts {
                    turns.push(match part["type"].as_str() {
                        Some("tool_result") => Turn::ToolResult,
                        _ => Turn::User(text_of(part)),
                    });
                }
            }
            content => turns.push(Turn::User(text_of(content))),
        }
    }
    let step = next_step(&turns, request["tools"].as_array().is_some_and(|tools| !tools.is_empty()));
    let mut blocks = Vec::new();
    if let Some(text) = step["text"].as_str() {
        blocks.push(json!({"type": "text", "text": text}));
    }
    if let Some(tool) = step["tool"].as_str() {
        let id = format!("toolu_{:06}", unique());
        blocks.push(json!({"type": "tool_use", "id": id, "name": tool, "input": step["input"]}));
    }
    let reason = if step["tool"].is_string() { "tool_use" } else { "end_turn" };
    let usage = json!({
        "input_tokens": 10, "output_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0
    });
    let message = json!({
        "id": format!("msg_{:06}", unique()), "type": "message", "role": "assistant", "model": request["model"],
        "content": blocks, "stop_reason": reason, "stop_sequence": null, "usage": usage
    });
    let mut start = message.clone();
    (start["content"], start["stop_reason"]) = (json!([]), Value::Null);
    let mut events: Events = Vec::new();
    let mut push = |name: &'static str, mut data: Value| {
        data["type"] = json!(name);
        events.push((Some(name), data.to_string()));
    };
    push("message_start", json!({"message": start}));
    for (index, block) in blocks.iter().enumerate() {
        let (empty, delta) = if block["type"] == "text" {
            (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": block["text"]}))
        } else {
            let mut empty = block.clone();
            empty["input"] = json!({});
            (empty, json!({"type": "input_json_delta", "partial_json": block["input"].to_string()}))
        };
        push("content_block_start", json!({"index": index, "content_block": empty}));
        push("content_block_delta", json!({"index": index, "delta": delta}));
        push("content_block_stop", json!({"index": index}));
    }
    push(
        "message_delta",
        json!({"delta": {"stop_reason": reason, "stop_sequence": null}, "usage": {"output_tokens": 10}}),
    );
    push("message_stop", json!({}));
    (message, events)
}

fn openai_responses(request: &Value) -> (Value, Events) {
    let mut turns = Vec::new();
    for item in request["input"].as_array().into_iter().flatten() {
        if item["type"].as_str().is_some_and(|kind| kind.ends_with("call_output")) {
            turns.push(Turn::ToolResult);
        } else if item["role"] == "user" {
            turns.push(Turn::User(text_of(&item["content"])));
        }
    }
    let step = next_step(&turns, request["tools"].as_array().is_some_and(|tools| !tools.is_empty()));
    let mut items = Vec::new();
    if let Some(text) = step["text"].as_str() {
        items.push(json!({
            "type": "message", "id": format!("msg_{}", unique()), "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}]
        }));
    }
    if let Some(tool) = step["tool"].as_str() {
        let number = unique();
        items.push(json!({
            "type": "function_call", "id": format!("fc_{number}"), "call_id": format!("call_{number:06}"), "name": tool,
            "arguments": step["input"].to_string(), "status": "completed"
        }));
    }
    let response = json!({
        "id": format!("resp_{}", unique()), "object": "response", "status": "completed", "model": request["model"],
        "output": items, "created_at": 1, "error": null, "incomplete_details": null,
        "usage": {
            "input_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 10,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 20
        }
    });
    let mut events: Events = Vec::new();
    let mut push = |name: &'static str, mut data: Value| {
        data["type"] = json!(name);
        data["sequence_number"] = json!(events.len());
        events.push((Some(name), data.to_string()));
    };
    let mut created = response.clone();
    (created["status"], created["output"]) = (json!("in_progress"), json!([]));
    push("response.created", json!({"response": created}));
    for (index, item) in items.iter().enumerate() {
        push("response.output_item.added", json!({"output_index": index, "item": item}));
        if item["type"] == "message" {
            let text = &item["content"][0]["text"];
            push(
                "response.output_text.delta",
                json!({"item_id": item["id"], "output_index": index, "content_index": 0, "delta": text}),
            );
        }
        push("response.output_item.done", json!({"output_index": index, "item": item}));
    }
    push("response.completed", json!({"response": response}));
    (response, events)
}

fn chat_completions(request: &Value) -> (Value, Events) {
    let mut turns = Vec::new();
    for message in request["messages"].as_array().into_iter().flatten() {
        match message["role"].as_str() {
            Some("tool") => turns.push(Turn::ToolResult),
            Some("user") => turns.push(Turn::User(text_of(&message["content"]))),
            _ => {}
        }
    }
    let step = next_step(&turns, request["tools"].as_array().is_some_and(|tools| !tools.is_empty()));
    let mut delta = json!({"role": "assistant", "content": step["text"].as_str().unwrap_or_default()});
    let reason = if step["tool"].is_string() { "tool_calls" } else { "stop" };
    if let Some(tool) = step["tool"].as_str() {
        let function = json!({"name": tool, "arguments": step["input"].to_string()});
        let id = format!("call_{:06}", unique());
        delta["tool_calls"] = json!([{"index": 0, "id": id, "type": "function", "function": function}]);
    }
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20});
    let base = json!({"id": format!("chatcmpl-{}", unique()), "created": 1, "model": request["model"]});
    let with = |members: Value| {
        let mut all = base.clone();
        for (name, value) in members.as_object().unwrap() {
            all[name] = value.clone();
        }
        all
    };
    let complete = with(json!({
        "object": "chat.completion", "choices": [{"index": 0, "message": delta, "finish_reason": reason}], "usage": usage
    }));
    let chunk =
        |choice: Value| with(json!({"object": "chat.completion.chunk", "choices": [choice], "usage": usage}));
    let events = vec![
        (None, chunk(json!({"index": 0, "delta": delta, "finish_reason": null})).to_string()),
        (None, chunk(json!({"index": 0, "delta": {}, "finish_reason": reason})).to_string()),
        (None, "[DONE]".to_owned()),
    ];
    (complete, events)
}

fn gemini(request: &Value) -> Value {
    let mut turns = Vec::new();
    for content in
        request["contents"].as_array().into_iter().flatten().filter(|content| content["role"] != "model")
    {
        for part in content["parts"].as_array().into_iter().flatten() {
            if part["functionResponse"].is_object() {
                turns.push(Turn::ToolResult);
            } else if let Some(text) = part["text"].as_str() {
                turns.push(Turn::User(text.to_owned()));
            }
        }
    }
    let tools = request["tools"].as_array();
    let has_tools =
        tools.is_some_and(|tools| tools.iter().any(|tool| tool["functionDeclarations"].is_array()));
    let step = next_step(&turns, has_tools);
    let mut parts = Vec::new();
    if let Some(text) = step["text"].as_str() {
        parts.push(json!({"text": text}));
    }
    if let Some(tool) = step["tool"].as_str() {
        parts.push(json!({"functionCall": {"name": tool, "args": step["input"]}}));
    }
    json!({
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 10, "totalTokenCount": 20},
        "modelVersion": "scripted"
    })
}
