//! A stand-in for an endpoint that speaks chat completions, for the examples in the documentation of the crate `sayso`.

use std::io::{Read, Write};

use serde_json::json;

/// Its address. Whatever it is asked, it wishes a good morning.
pub fn endpoint() -> String {
    answering(None)
}

/// The same, but first it wants this tool to be called.
pub fn endpoint_that_wants(tool: &str, arguments: &str) -> String {
    let function = json!({ "name": tool, "arguments": arguments });
    let calls = json!([{ "index": 0, "id": "c1", "type": "function", "function": function }]);
    answering(Some(json!({ "tool_calls": calls })))
}

fn answering(mut first: Option<serde_json::Value>) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || -> std::io::Result<()> {
        for stream in listener.incoming() {
            let mut stream = stream?;
            let _ = stream.read(&mut vec![0; 65_536])?;
            let reason = if first.is_some() { "tool_calls" } else { "stop" };
            let delta = first.take().unwrap_or_else(|| json!({ "content": "Good morning." }));
            let event = json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }] });
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            write!(stream, "{head}data: {event}\n\ndata: [DONE]\n\n")?;
            stream.shutdown(std::net::Shutdown::Write)?;
            let _ = stream.read_to_end(&mut Vec::new());
        }
        Ok(())
    });
    url
}
