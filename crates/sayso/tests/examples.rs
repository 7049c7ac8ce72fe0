//! The examples run, and do what they say.

use std::path::PathBuf;
use std::process::Command;

use crate::support::stage::{Kind, Stage, told};

/// Cargo builds the examples before it runs the tests, beside them.
fn example(name: &str) -> Command {
    let deps = std::env::current_exe().unwrap();
    let path: PathBuf = deps.parent().and_then(|deps| deps.parent()).unwrap().join("examples").join(name);
    assert!(path.exists(), "cargo test builds the examples, unless it is told which tests to build");
    Command::new(path)
}

fn said(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_manual_loop_pays_nothing_where_nobody_listens() {
    assert_eq!(said(&mut example("manual_loop")), "Nothing was paid: nobody could be asked.\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_manual_loop_pays_on_a_yes_and_only_then() {
    let mut stage = Stage::new(Kind::Embedded).await;
    for (decision, words) in [
        ("accept", "The bill is paid; the receipt is 4711.\n"),
        ("reject", "Nothing was paid: the person refused.\n"),
    ] {
        let url = format!("http://{}", stage.address());
        let mut command = example("manual_loop");
        let running = tokio::task::spawn_blocking(move || said(command.env("SAYSO_URL", url)));
        stage.person.decides(decision).await;
        assert_eq!(running.await.unwrap(), words);
        let heard = told(&stage.person.hears_until("session.completed").await);
        assert_eq!(heard.contains(&"tool.invoked".to_owned()), decision == "accept", "{heard:?}");
    }
}

/// An example that asks a model, which wants money to be sent.
#[cfg(any(feature = "openai", feature = "rig-http"))]
async fn asks_a_model(name: &str, yes: &str, no: &str) {
    use crate::support::endpoint::{Endpoint, Reply};
    let mut stage = Stage::new(Kind::Embedded).await;
    for (decision, words) in [("accept", yes), ("reject", no)] {
        let call = Reply::calls("send_money", r#"{"to":"Ben","euro":5}"#);
        let endpoint = Endpoint::new([call, Reply::says("That was it.")]).await;
        let mut command = example(name);
        command.env("SAYSO_URL", format!("http://{}", stage.address())).env("OPENAI_BASE_URL", &endpoint.url);
        command.env("OPENAI_API_KEY", "sk-example").env("OPENAI_MODEL", "a-model");
        let running = tokio::task::spawn_blocking(move || said(&mut command));
        let asked = stage.person.decides(decision).await;
        assert_eq!(asked["action"], "Send 5 euro to Ben.");
        assert_eq!(running.await.unwrap(), words);
        let heard = told(&stage.person.hears_until("session.completed").await);
        assert_eq!(heard.contains(&"tool.invoked".to_owned()), decision == "accept", "{heard:?}");
        let asked = endpoint.asked();
        assert_eq!((asked.len(), asked[0].body["model"].as_str()), (2, Some("a-model")));
        assert!(asked[0].head.contains("Bearer sk-example"), "{}", asked[0].head);
    }
}

#[cfg(feature = "openai")]
#[tokio::test(flavor = "multi_thread")]
async fn the_ready_loop_sends_on_a_yes_and_only_then() {
    let no = "send_money: it was not done: the person refused.\nThat was it.\n";
    asks_a_model("openai", "send_money: it is done.\nThat was it.\n", no).await;
}

#[cfg(feature = "openai")]
#[tokio::test(flavor = "multi_thread")]
async fn the_ready_loop_speaks_tls_to_whom_the_system_trusts() {
    let (endpoint, certificate) =
        crate::support::endpoint::Endpoint::with_tls([crate::support::endpoint::Reply::says("Well met.")])
            .await;
    let folder = tempfile::tempdir().unwrap();
    let trusted = folder.path().join("trusted.pem");
    std::fs::write(&trusted, certificate).unwrap();
    for (trusts, words) in
        [(true, "Well met.\n"), (false, "There is no answer: the endpoint cannot be reached: ")]
    {
        let mut command = example("openai");
        command
            .env("OPENAI_BASE_URL", &endpoint.url)
            .env("OPENAI_API_KEY", "sk-example")
            .env_remove("SAYSO_URL");
        if trusts {
            command.env("SSL_CERT_FILE", &trusted);
        }
        let said = tokio::task::spawn_blocking(move || said(&mut command)).await.unwrap();
        assert!(said.starts_with(words), "{said}");
        // Who is not trusted is told nothing.
        assert_eq!(endpoint.asked().len(), 1);
    }
}

#[cfg(feature = "rig-http")]
#[tokio::test(flavor = "multi_thread")]
async fn rigs_loop_sends_on_a_yes_and_only_then() {
    asks_a_model("rig", "That was it.\n", "That was it.\n").await;
}

#[test]
fn frameworks_and_tools_do_nothing_where_nobody_listens() {
    assert_eq!(said(&mut example("decorator")), "Nothing was moved: nobody could be asked.\n");
    assert_eq!(said(&mut example("middleware")), "Nothing was deleted: nobody could be asked.\n");
    assert_eq!(said(&mut example("callbacks")), "Nothing was ordered: nobody could be asked.\n");
    assert_eq!(said(&mut example("event_bridge")), "Nothing was sent: nobody could be asked.\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn frameworks_and_tools_act_on_a_yes_and_only_then() {
    let mut stage = Stage::new(Kind::Embedded).await;
    for (name, decision, words, end) in [
        ("hello", "accept", "", "session.completed"),
        ("hello", "reject", "", "session.cancelled"),
        ("decorator", "accept", "The receipt is 4711.\n", "session.completed"),
        ("decorator", "reject", "Nothing was moved: the person refused.\n", "session.cancelled"),
        ("middleware", "accept", "17 messages are gone.\n", "session.completed"),
        ("middleware", "reject", "Nothing was deleted: the person refused.\n", "session.cancelled"),
        ("callbacks", "accept", "The blue kettle is ordered.\n", "session.completed"),
        ("callbacks", "reject", "Nothing was ordered: the person refused.\n", "session.completed"),
        ("event_bridge", "accept", "The mail is sent.\n", "session.completed"),
        ("event_bridge", "reject", "Nothing was sent: the person refused.\n", "session.completed"),
    ] {
        let url = format!("http://{}", stage.address());
        let mut command = example(name);
        let running = tokio::task::spawn_blocking(move || said(command.env("SAYSO_URL", url)));
        stage.person.decides(decision).await;
        assert_eq!(running.await.unwrap(), words);
        let heard = told(&stage.person.hears_until(end).await);
        assert_eq!(heard.contains(&"tool.invoked".to_owned()), decision == "accept", "{heard:?}");
    }
}

#[test]
fn every_example_is_short() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let lines = std::fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines < 80, "{} has {lines} lines", path.display());
    }
}
