//! Tests that run the examples.

use std::path::Path;
use std::process::Command;

use crate::support::fixture::{HubFixture, HubKind, event_kinds};

/// Returns the command that runs an example. Cargo builds the examples before it runs the tests.
fn example_command(name: &str) -> Command {
    let test_program = std::env::current_exe().unwrap();
    let target: &Path = test_program.parent().and_then(Path::parent).unwrap();
    let path = target.join("examples").join(name);
    assert!(path.exists(), "run `cargo test` without a test target, so that cargo builds the examples");
    Command::new(path)
}

fn run_for_stdout(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_manual_loop_pays_nothing_without_listeners() {
    assert_eq!(
        run_for_stdout(&mut example_command("manual_loop")),
        "Nothing was paid: nobody could be asked.\n"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_manual_loop_pays_only_after_a_yes() {
    let mut fixture = HubFixture::new(HubKind::Embedded).await;
    for (decision, output) in [
        ("accept", "The bill is paid; the receipt is 4711.\n"),
        ("reject", "Nothing was paid: the person refused.\n"),
    ] {
        let url = format!("http://{}", fixture.address());
        let mut command = example_command("manual_loop");
        let running = tokio::task::spawn_blocking(move || run_for_stdout(command.env("SAYSO_URL", url)));
        fixture.listener.decide_next(decision).await;
        assert_eq!(running.await.unwrap(), output);
        let kinds = event_kinds(&fixture.listener.events_until("session.completed").await);
        assert_eq!(kinds.contains(&"tool.invoked".to_owned()), decision == "accept", "{kinds:?}");
    }
}

/// Runs an example whose model requests a payment, once with a yes and once with a no.
#[cfg(any(feature = "openai", feature = "rig-http"))]
async fn run_with_model(name: &str, output_on_yes: &str, output_on_no: &str) {
    use crate::support::endpoint::{Endpoint, ScriptedReply};
    let mut fixture = HubFixture::new(HubKind::Embedded).await;
    for (decision, output) in [("accept", output_on_yes), ("reject", output_on_no)] {
        let call = ScriptedReply::from_tool_call("send_money", r#"{"to":"Ben","euro":5}"#);
        let endpoint = Endpoint::new([call, ScriptedReply::from_text("That was it.")]).await;
        let mut command = example_command(name);
        command
            .env("SAYSO_URL", format!("http://{}", fixture.address()))
            .env("OPENAI_BASE_URL", &endpoint.url);
        command.env("OPENAI_API_KEY", "sk-example").env("OPENAI_MODEL", "a-model");
        let running = tokio::task::spawn_blocking(move || run_for_stdout(&mut command));
        let question = fixture.listener.decide_next(decision).await;
        assert_eq!(question["action"], "Send 5 euros to Ben.");
        assert_eq!(running.await.unwrap(), output);
        let kinds = event_kinds(&fixture.listener.events_until("session.completed").await);
        assert_eq!(kinds.contains(&"tool.invoked".to_owned()), decision == "accept", "{kinds:?}");
        let requests = endpoint.requests();
        assert_eq!((requests.len(), requests[0].body["model"].as_str()), (2, Some("a-model")));
        assert!(requests[0].head.contains("Bearer sk-example"), "{}", requests[0].head);
    }
}

#[cfg(feature = "openai")]
#[tokio::test(flavor = "multi_thread")]
async fn the_openai_loop_sends_only_after_a_yes() {
    let output_on_no = "send_money: it was not run: the person refused.\nThat was it.\n";
    run_with_model("openai", "send_money: it succeeded.\nThat was it.\n", output_on_no).await;
}

#[cfg(feature = "openai")]
#[tokio::test(flavor = "multi_thread")]
async fn the_openai_loop_connects_over_tls_only_to_trusted_endpoints() {
    let (endpoint, certificate) =
        crate::support::endpoint::Endpoint::with_tls([crate::support::endpoint::ScriptedReply::from_text(
            "Well met.",
        )])
        .await;
    let folder = tempfile::tempdir().unwrap();
    let trusted = folder.path().join("trusted.pem");
    std::fs::write(&trusted, certificate).unwrap();
    for (is_trusted, expected) in
        [(true, "Well met.\n"), (false, "The request failed: the endpoint cannot be reached: ")]
    {
        let mut command = example_command("openai");
        command
            .env("OPENAI_BASE_URL", &endpoint.url)
            .env("OPENAI_API_KEY", "sk-example")
            .env_remove("SAYSO_URL");
        if is_trusted {
            command.env("SSL_CERT_FILE", &trusted);
        }
        let output = tokio::task::spawn_blocking(move || run_for_stdout(&mut command)).await.unwrap();
        assert!(output.starts_with(expected), "{output}");
        // An untrusted endpoint receives nothing.
        assert_eq!(endpoint.requests().len(), 1);
    }
}

#[cfg(feature = "rig-http")]
#[tokio::test(flavor = "multi_thread")]
async fn the_rig_loop_sends_only_after_a_yes() {
    run_with_model("rig", "That was it.\n", "That was it.\n").await;
}

#[test]
fn frameworks_and_tools_do_nothing_without_listeners() {
    assert_eq!(
        run_for_stdout(&mut example_command("decorator")),
        "Nothing was moved: nobody could be asked.\n"
    );
    assert_eq!(
        run_for_stdout(&mut example_command("middleware")),
        "The request failed: nobody could be asked.\n"
    );
    assert_eq!(
        run_for_stdout(&mut example_command("callbacks")),
        "Nothing was ordered: nobody could be asked.\n"
    );
    assert_eq!(
        run_for_stdout(&mut example_command("event_bridge")),
        "Nothing was sent: nobody could be asked.\n"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn frameworks_and_tools_act_only_after_a_yes() {
    let mut fixture = HubFixture::new(HubKind::Embedded).await;
    for (name, decision, output, end) in [
        ("hello", "accept", "", "session.completed"),
        ("hello", "reject", "", "session.cancelled"),
        ("decorator", "accept", "The receipt is 4711.\n", "session.completed"),
        ("decorator", "reject", "Nothing was moved: the person refused.\n", "session.cancelled"),
        ("middleware", "accept", "17 messages were deleted.\n", "session.completed"),
        ("middleware", "reject", "The request failed: the person refused.\n", "session.cancelled"),
        ("callbacks", "accept", "The blue kettle is ordered.\n", "session.completed"),
        ("callbacks", "reject", "Nothing was ordered: the person refused.\n", "session.completed"),
        ("event_bridge", "accept", "The mail is sent.\n", "session.completed"),
        ("event_bridge", "reject", "Nothing was sent: the person refused.\n", "session.completed"),
    ] {
        let url = format!("http://{}", fixture.address());
        let mut command = example_command(name);
        let running = tokio::task::spawn_blocking(move || run_for_stdout(command.env("SAYSO_URL", url)));
        fixture.listener.decide_next(decision).await;
        assert_eq!(running.await.unwrap(), output);
        let kinds = event_kinds(&fixture.listener.events_until(end).await);
        assert_eq!(kinds.contains(&"tool.invoked".to_owned()), decision == "accept", "{kinds:?}");
    }
}

#[test]
fn every_example_is_short() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let lines = std::fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines < 80, "{} has {lines} lines", path.display());
    }
}
