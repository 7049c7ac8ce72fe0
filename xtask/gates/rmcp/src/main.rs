//! rmcp, the official Rust SDK, as an MCP host through `sayso mcp`. Started by `cargo xtask gates --only rmcp`.
//!
//! Usage: `rmcp-host legacy|modern SAYSO HUB_URL SERVER…`. For `legacy` (initialize, up to 2025-11-25) the server is server-everything, for
//! `modern` (2026-07-28) it is `py_modern.py serve`. With the environment variable `EXPECT=refused`, the gated call must be refused.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData,
    Implementation, ProtocolVersion,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RequestContext, RunningService};
use rmcp::transport::TokioChildProcess;
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Value, json};
use tokio::process::Command;

/// A host that answers the server's forms, and counts them.
#[derive(Clone, Default)]
struct Host(Arc<AtomicUsize>);

impl ClientHandler for Host {
    fn get_info(&self) -> ClientConfig {
        let capabilities = serde_json::from_value(json!({"elicitation": {"form": {}}})).expect("capabilities");
        ClientConfig::new(capabilities, Implementation::new("rmcp-host", "1"))
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(json!({"name": "Ana"})))
    }
}

type Client = RunningService<RoleClient, Host>;

async fn call(client: &Client, tool: &'static str, arguments: Value) -> CallToolResult {
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    client.call_tool(CallToolRequestParams::new(tool).with_arguments(arguments)).await.expect("an answer")
}

fn text(result: &CallToolResult) -> String {
    result.content.first().and_then(|block| block.as_text()).map(|text| text.text.clone()).unwrap_or_default()
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [era, sayso, hub, server @ ..] = arguments.as_slice() else { panic!("rmcp-host legacy|modern SAYSO HUB_URL SERVER…") };
    let is_modern = era == "modern";
    let mut command = Command::new(sayso);
    command.args(["mcp", "--name", era, "--hub", hub, "--"]).args(server);
    let (transport, _) = TokioChildProcess::builder(command).stderr(Stdio::null()).spawn().expect("the gate starts");
    let lifecycle = if is_modern {
        ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
    } else {
        ClientLifecycleMode::Initialize
    };
    let host = Host::default();
    let asked = host.0.clone();
    let client = host.serve_with_lifecycle(transport, lifecycle).await.expect("a connection");
    let tools = client.list_all_tools().await.expect("the tools");
    let (tool, sum_of) = if is_modern { ("add", "It is") } else { ("get-sum", "is") };
    assert!(tools.iter().any(|known| known.name == tool), "{tools:?}");
    let sum = call(&client, tool, json!({"a": 2, "b": 3})).await;
    if std::env::var("EXPECT").is_ok_and(|expected| expected == "refused") {
        assert_eq!(sum.is_error, Some(true));
        assert!(text(&sum).contains("was not called"), "{}", text(&sum));
    } else {
        assert!(text(&sum).contains(&format!("{sum_of} 5")), "{}", text(&sum));
        let of = |a: u32| call(&client, tool, json!({"a": a, "b": 1}));
        let sums = tokio::join!(of(0), of(1), of(2), of(3));
        for (a, sum) in [sums.0, sums.1, sums.2, sums.3].iter().enumerate() {
            assert!(text(sum).contains(&format!("{sum_of} {}", a + 1)), "{}", text(sum));
        }
        if is_modern {
            // The server answers with `input_required`, and the host calls again under another id.
            assert_eq!(text(&call(&client, "greet", json!({})).await), "Hello, Ana.");
            assert_eq!(asked.load(Ordering::Relaxed), 1);
        }
    }
    client.cancel().await.expect("the end");
    println!("rmcp, {era}: ok");
}
