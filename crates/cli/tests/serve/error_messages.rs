//! Error messages in plain language that say what to do instead. Also token names, addresses and file permissions.

use std::os::unix::fs::PermissionsExt as _;

use testing::cli::{create_token, run_sayso};
use testing::http::{TestClient, TestResponse};
use testing::hub::HubProcess;
use testing::messages::REPLY_CAPABILITIES;

/// Runs a command that must fail with exit code 2 and returns its standard error.
fn run_refused(arguments: &[&str]) -> String {
    let output = run_sayso(arguments, "");
    assert_eq!(output.exit_code, 2, "{arguments:?}: {}", output.stderr);
    assert!(
        !output.stderr.contains("os error") && !output.stderr.contains("stopping"),
        "{arguments:?}: {}",
        output.stderr
    );
    output.stderr
}

#[test]
fn system_errors_are_explained_in_plain_language() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("file"), "").unwrap();
    let hub = HubProcess::start_in_memory();
    let serve_arguments = ["serve", "--memory", "--open", "--listen"];
    let error = run_refused(&[&serve_arguments[..], &[&hub.address]].concat());
    assert!(
        error.contains(&format!("cannot listen on {}: another program is using this address", hub.address))
    );
    assert!(error.contains("use --listen to choose another address"), "{error}");
    let demo_error = run_refused(&["demo", "--listen", &hub.address]);
    assert!(demo_error.contains("another program is using this address"), "{demo_error}");
    let under_file = path("file/below");
    for (arguments, expected) in [
        (
            vec!["serve", "--listen", "127.0.0.1:0", "--data", &under_file],
            "part of the path is a file, not a folder",
        ),
        (
            vec!["serve", "--memory", "--listen", "127.0.0.1:0", "--tokens", &under_file],
            "part of the path is a file",
        ),
        (
            vec!["serve", "--memory", "--listen", "127.0.0.1:0", "--tokens", &path("no")],
            "there is no such file",
        ),
        (
            vec!["token", "new", "--role", "admin", "--name", "x", "--tokens", &under_file],
            "part of the path is a file",
        ),
        (vec!["listen", "http://127.0.0.1:1"], "nothing is listening there"),
        (vec!["schema", "--out", &under_file], "part of the path is a file, not a folder"),
        (vec!["serve", "--listen", "hub.example:8787"], "such as 127.0.0.1:8787"),
    ] {
        let error = run_refused(&arguments);
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}

#[test]
fn a_hub_can_listen_on_localhost_by_name() {
    let hub = HubProcess::start(&["--memory", "--open", "--listen", "localhost:0"]);
    assert!(hub.address.starts_with("127.0.0.1:"), "{}", hub.address);
    assert_eq!(hub.client().get("/healthz").status, 200);
}

#[test]
fn folders_are_private_to_their_owner() {
    let folder = tempfile::tempdir().unwrap();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let (data, tokens) = (folder.path().join("hub/data"), folder.path().join("created/tokens"));
    let _hub = HubProcess::start(&["--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()]);
    testing::cli::create_token(tokens.to_str().unwrap(), &["--role", "listener", "--name", "ada"]);
    for created in [data.as_path(), data.parent().unwrap(), tokens.parent().unwrap()] {
        assert_eq!(mode(created), 0o700, "{}", created.display());
    }
    for file in std::fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().path()) {
        let is_public = file.ends_with("manifest.jwk");
        assert!(is_public || mode(&file) == 0o600, "{}: {:o}", file.display(), mode(&file));
    }
}

#[test]
fn a_token_name_must_be_readable_and_not_reserved() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens");
    for name in ["a\nb", "a\u{1b}[2J", "\u{202e}ada", "", "  ", "local", "sayso-demo", "sayso-embedded"] {
        let arguments =
            ["token", "new", "--tokens", file.to_str().unwrap(), "--role", "listener", "--name", name];
        let error = run_refused(&arguments);
        assert!(error.contains("name") && !error.contains('\u{1b}'), "{error}");
    }
    assert!(!file.exists());
}

#[test]
fn a_local_address_needs_no_scheme() {
    let hub = HubProcess::start_in_memory();
    let port = hub.address.rsplit(':').next().unwrap();
    for address in [format!("127.0.0.1:{port}"), format!("localhost:{port}")] {
        let output = run_sayso(&["listen", &address, "--json"], "quit\n");
        assert_eq!(output.exit_code, 0, "{}", output.stderr);
        assert!(
            output.stderr.contains(&format!("using http://{address} for {address}")),
            "{}",
            output.stderr
        );
    }
    let error = run_refused(&["listen", "hub.example:8787"]);
    assert!(error.contains("write https://hub.example:8787, or http://hub.example:8787"), "{error}");
}

#[test]
fn a_404_says_what_is_missing_and_tells_strangers_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens").to_str().unwrap().to_owned();
    let tokens = ["bank", "mail"]
        .map(|name| create_token(&file, &["--role", "agent", "--name", name, "--agent-id", name]));
    let hub = HubProcess::start(&["--memory", "--listen", "127.0.0.1:0", "--tokens", &file]);
    let [bank, mail] = tokens.map(|token| hub.client().with_bearer(&token));
    let session = bank.start_session();
    let output = format!("/agent/v1/sessions/{session}/output");
    let title = |response: TestResponse| {
        assert_eq!(response.status, 404, "{response:?}");
        response.json_str("title")
    };
    let missing = title(bank.post("/agent/v1/sessions/sess_0123/output", "x"));
    assert_eq!(missing, "There is no such session, or it belongs to another token.");
    assert_eq!(title(mail.post(&output, "x")), missing, "somebody else's session looks like a missing one");
    let question = format!("/agent/v1/sessions/{session}/replies/rpl_0123");
    assert_eq!(title(bank.get(&question)), "The session has no such question.");
    assert_eq!(title(mail.get(&question)), missing);
    let end = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
    assert_eq!(bank.post(&format!("/agent/v1/sessions/{session}/events"), end).status, 200);
    assert_eq!(title(bank.post(&output, "x")), "The session has ended; start a new one.");
    assert_eq!(title(mail.post(&output, "x")), missing);
    assert_eq!(
        title(bank.post(&format!("/agent/v1/sessions/{session}/event"), end)),
        format!("There is no such path. Did you mean /agent/v1/sessions/{session}/events?")
    );
    assert_eq!(
        title(bank.post("/agent/v1/session", "{}")),
        "There is no such path. Did you mean /agent/v1/sessions?"
    );
    assert_eq!(title(bank.get("/nothing/like/this")), "There is no such path.");
}

#[test]
fn a_405_names_the_permitted_methods() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    for (method, path, allowed) in [
        ("GET", "/agent/v1/sessions", "POST"),
        ("PUT", "/agent/v1/sessions/sess_1/events", "POST"),
        ("POST", "/agent/v1/sessions/sess_1/replies/rpl_1", "GET, DELETE"),
        ("DELETE", "/aaep/v1/events", "GET"),
        ("POST", "/healthz", "GET, HEAD"),
        ("POST", "/", "GET, HEAD"),
        ("GET", "/login", "POST"),
    ] {
        let response = client.send(method, path, "");
        assert_eq!(response.status, 405, "{method} {path}: {response:?}");
        let header = format!("\r\nallow: {}\r\n", allowed.to_lowercase());
        assert!(response.head.to_lowercase().contains(&header), "{method} {path}: {response:?}");
    }
}

#[test]
fn an_empty_body_is_called_empty_and_misspelled_names_get_a_suggestion() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let session = client.start_session();
    let path = |last: &str| format!("/agent/v1/sessions/{session}/{last}");
    for path in
        ["/agent/v1/sessions".to_owned(), path("events"), path("confirmations"), path("clarifications")]
    {
        for body in ["", " \n"] {
            let response = client.post(&path, body);
            assert_eq!(response.status, 400, "{response:?}");
            assert_eq!(response.json_str("title"), "The body is empty; send a JSON object.");
        }
    }
    for (event, suggestion) in [
        (
            r#"{"type":"aaep:agent.tool.invokd","tool":"look","summary_normal":"Looking."}"#,
            "aaep:agent.tool.invoked",
        ),
        (
            r#"{"type":"agent.tool.invoked","tool":"look","summary_normal":"Looking."}"#,
            "aaep:agent.tool.invoked",
        ),
        (
            r#"{"type":"aaep:agent.tool.invoked","tool":"look","sumary_normal":"Looking."}"#,
            "unknown member; did you mean summary_normal?",
        ),
    ] {
        let response = client.post(&path("events"), event);
        assert_eq!(response.status, 422, "{response:?}");
        assert!(response.body.contains("did you mean") && response.body.contains(suggestion), "{response:?}");
        for supplied in
            ["event_id is missing", "timestamp is missing", "primary_language", "localization_hints"]
        {
            assert!(!response.body.contains(supplied), "the hub supplies it: {response:?}");
        }
    }
    let event_with_unrelated_member =
        r#"{"type":"aaep:agent.tool.invoked","tool":"look","summary_normal":"Looking.","weather":"fine"}"#;
    let response = client.post(&path("events"), event_with_unrelated_member);
    assert!(response.status == 422 && !response.body.contains("did you mean"), "{response:?}");
}

/// Asserts that a request is refused with this text.
fn assert_refused_with(client: &TestClient, path: &str, body: &str, expected: &str) {
    let response = client.post(path, body);
    assert!(matches!(response.status, 400 | 422), "{body}: {response:?}");
    assert!(response.body.contains(expected), "{body}: {expected} is not in {response:?}");
}

#[test]
fn misspelled_members_parameters_and_types_get_a_suggestion() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let session = client.start_session();
    let path = |last: &str| format!("/agent/v1/sessions/{session}/{last}");
    for (event, suggestion) in [
        (r#"{"type":"tool.invoked","tool":"look"}"#, "aaep:agent.tool.invoked"),
        (r#"{"type":"aaep:agent.progress.updated","progress":{"percnt":5}}"#, "did you mean percent?"),
        (
            r#"{"type":"aaep:agent.tool.invoked","tool":"look","localization_hints":{"primary_language":"en","text_directon":"ltr"}}"#,
            "did you mean text_direction?",
        ),
        (r#"{"type":"aaep:agent.tool.invoked","tool":"look","argments":{}}"#, "did you mean arguments?"),
        (r#"{"type":"aaep:agent.state.changed","to_state":"idle","prducer":"x"}"#, "did you mean producer?"),
    ] {
        assert_refused_with(&client, &path("events"), event, suggestion);
    }
    for (start, suggestion) in [
        (r#"{"summary_normal":"A.","parnt":"sess_1"}"#, "did you mean parent?"),
        (r#"{"summary_normal":"A.","producer_s":[]}"#, "did you mean producers?"),
        (r#"{"summary_normal":"A.","producer":{"agent_nam":"Bank"}}"#, "did you mean agent_name?"),
    ] {
        assert_refused_with(&client, "/agent/v1/sessions", start, suggestion);
    }
    let question = r#"{"action":"A.","consequence":"B.","timeout_seconds":60,"default_decision":"reject","tol":"send","arguments":{}}"#;
    assert_refused_with(
        &client,
        &path("confirmations"),
        question,
        r#"did you mean tool instead of \"tol\"?"#,
    );
    assert_refused_with(&client, &path("output?complte=true"), "A.", "did you mean complete?");
    let request = r#"{"type":"subscription.request","capabilites":{}}"#;
    assert!(client.post("/aaep/v1/subscriptions", request).status >= 400);
}

#[test]
fn no_finding_asks_for_a_member_that_the_hub_fills_in() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let session = client.start_session();
    let events = format!("/agent/v1/sessions/{session}/events");
    let bodies = [
        (&*events, r#"{"type":"aaep:agent.state.changed"}"#),
        (&*events, r#"{"type":"aaep:agent.state.changed","to_state":""}"#),
        (&*events, r#"{"type":"aaep:agent.tool.invoked"}"#),
        (&*events, r#"{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":""}"#),
        (&*events, r#"{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":null}"#),
        (&*events, r#"{"type":"aaep:agent.tool.completed","tool":"look"}"#),
        (&*events, r#"{"type":"aaep:agent.progress.updated"}"#),
        ("confirmations", "{}"),
        ("clarifications", "{}"),
        ("handoffs", "{}"),
    ];
    for (path, body) in bodies {
        let path =
            if path == events { events.clone() } else { format!("/agent/v1/sessions/{session}/{path}") };
        let response = client.post(&path, body);
        assert_eq!(response.status, 422, "{body}: {response:?}");
        for supplied in [
            "reply_token",
            "from_state",
            "summary_normal",
            "call_ ",
            "event_id",
            "session_id",
            "timestamp",
            "localization_hints",
            "primary_language",
            "urgency",
            "aaep_version",
        ] {
            assert!(!response.body.contains(supplied), "{body}: the hub supplies {supplied}: {response:?}");
        }
    }
    let with_token = r#"{"question":"Which?","timeout_seconds":60,"reply_token":"rpl_1"}"#;
    let clarifications = format!("/agent/v1/sessions/{session}/clarifications");
    assert_refused_with(&client, &clarifications, with_token, "reply_token is set by the hub");
}

#[test]
fn findings_say_which_event_of_a_batch_is_wrong() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client().with_header("Content-Type: application/x-ndjson");
    let session = hub.client().start_session();
    let path = format!("/agent/v1/sessions/{session}/events");
    let thinking = r#"{"type":"aaep:agent.state.changed","to_state":"thinking"}"#;
    let wrong = r#"{"type":"aaep:agent.state.changed"}"#;
    assert_refused_with(&client, &path, &format!("{thinking}\n{wrong}\n{thinking}"), "event 2 of 3: ");
    assert_refused_with(&client, &path, &format!("{thinking}\n[]"), "event 2 of 2: ");
    let alone = hub.client().post(&path, wrong);
    assert!(alone.status == 422 && !alone.body.contains("of 1"), "{alone:?}");
}

#[test]
fn the_hubs_language_is_a_setting() {
    let hub = HubProcess::start(&["--memory", "--open", "--listen", "127.0.0.1:0", "--hub-language", "es"]);
    let client = hub.client();
    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let mut stream = client.open_event_stream(&subscription, None);
    assert_eq!(client.post("/agent/v1/sessions", r#"{"summary_normal":"Pagar."}"#).status, 201);
    let (_, _, event) = stream.next();
    assert_eq!(event["localization_hints"]["primary_language"], "es", "{event}");
    let error = run_refused(&["serve", "--memory", "--hub-language", "not a language"]);
    assert!(error.contains("a language tag such as en"), "{error}");
}
