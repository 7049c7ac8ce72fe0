//! A stand-in for a chat completions endpoint, for the documentation examples of the `sayso` crate.

use std::io::{Read, Write};

use serde_json::json;

/// Starts an endpoint that answers every request with "Good morning.", and returns its URL.
pub fn start_endpoint() -> String {
    serve_completions(None)
}

/// Like [`start_endpoint`], but the first response calls this tool.
pub fn start_endpoint_with_tool_call(tool: &str, arguments: &str) -> String {
    let function = json!({ "name": tool, "arguments": arguments });
    let calls = json!([{ "index": 0, "id": "c1", "type": "function", "function": function }]);
    serve_completions(Some(json!({ "tool_calls": calls })))
}

fn serve_completions(mut first_delta: Option<serde_json::Value>) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || -> std::io::Result<()> {
        for stream in listener.incoming() {
            let mut stream = stream?;
            let _ = stream.read(&mut vec![0; 65_536])?;
            let finish_reason = if first_delta.is_some() { "tool_calls" } else { "stop" };
            let delta = first_delta.take().unwrap_or_else(|| json!({ "content": "Good morning." }));
            let event =
                json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": finish_reason }] });
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            write!(stream, "{head}data: {event}\n\ndata: [DONE]\n\n")?;
            stream.shutdown(std::net::Shutdown::Write)?;
            let _ = stream.read_to_end(&mut Vec::new());
        }
        Ok(())
    });
    url
}
