//! The manifests of agents: how they are published, what they prove, and who may publish them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testing::cli::{create_token, run_sayso};
use testing::http::{EventStream, TestClient};
use testing::hub::HubProcess;
use testing::messages::REPLY_CAPABILITIES;
use testing::terminal::ListenProcess;

const PUBLISH: &str = "/agent/v1/manifest";
const SERVED: &str = "/.well-known/aaep-manifests/bank.json";
const SESSION: &str =
    r#"{"summary_normal":"Hello.","producer":{"agent_name":"Any Name"},"requested_by":"user:ada"}"#;

fn states() -> Value {
    json!([{"state": "auditing", "words": {"en": "checking the books"}}])
}

/// Returns a manifest of this agent.
fn manifest(agent: &str) -> String {
    json!({
        "@context": "https://aaep-protocol.org/context/v1", "type": "aaep:producer.manifest", "agent_id": agent,
        "agent_name": "Ada's Bank", "aaep_versions_supported": ["1.0.0"], "conformance_levels_supported": [1, 2, 3],
        "transports_supported": ["sse"], "contact": "help@bank.example",
        "extensions": {"sayso": {
            "states": states(),
            "multi_agent": ["linked_sessions"],
        }},
    })
    .to_string()
}

/// A folder with tokens, keys, and the data of a hub.
struct Deployment(tempfile::TempDir);

impl Deployment {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text_path(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn token(&self, role: &[&str]) -> String {
        create_token(&self.text_path("tokens"), role)
    }

    fn agent_token(&self, agent: &str) -> String {
        self.token(&["--role", "agent", "--name", agent, "--agent-id", agent])
    }

    fn listener_token(&self) -> String {
        self.token(&["--role", "listener", "--name", "ada"])
    }

    fn start_hub(&self, arguments: &[&str]) -> HubProcess {
        let [data, tokens] = [self.text_path("data"), self.text_path("tokens")];
        let base =
            ["--listen", "127.0.0.1:0", "--data", &data, "--tokens", &tokens, "--http-heartbeat", "1h"];
        HubProcess::start(&[&base[..], arguments].concat())
    }

    /// Signs a text with the key of this name, which is created if it does not exist.
    fn sign(&self, key: &str, text: &str) -> String {
        let path = self.text_path(key);
        if !Path::new(&path).exists() {
            let jwk = run_sayso(&["manifest", "keygen", "--key", &path], "").stdout;
            std::fs::write(self.path(&format!("{key}.jwk")), jwk).unwrap();
        }
        run_sayso(&["manifest", "sign", "--key", &path], text).stdout
    }
}

fn open_stream(client: &TestClient) -> EventStream {
    client.open_event_stream(&client.subscribe(REPLY_CAPABILITIES), None)
}

/// Starts a session and returns its first event.
fn start_session(agent: &TestClient, stream: &mut EventStream) -> Value {
    assert_eq!(agent.post("/agent/v1/sessions", SESSION).status, 201);
    stream.next().2
}

#[test]
fn an_agent_publishes_its_manifest_and_its_events_name_the_address() {
    let deployment = Deployment::new();
    let (bank, ada) = (deployment.agent_token("bank"), deployment.listener_token());
    let mut hub = deployment.start_hub(&[]);
    let agent = hub.client().with_bearer(&bank);
    let mut stream = open_stream(&hub.client().with_bearer(&ada));
    assert_eq!(start_session(&agent, &mut stream)["producer"]["manifest_uri"], Value::Null);
    assert_eq!(hub.client().get(SERVED).status, 404);
    let published = agent.send("PUT", PUBLISH, &manifest("bank"));
    assert_eq!(published.status, 200, "{published:?}");
    let uri = format!("http://{}{SERVED}", hub.address);
    assert_eq!(published.json(), json!({"agent_id": "bank", "manifest_uri": uri, "verified": false}));
    let served = hub.client().get(SERVED);
    assert!(served.head.contains("Content-Type: application/json\r\n"), "{}", served.head);
    assert_eq!(served.body, manifest("bank"), "byte for byte");
    let started = start_session(&agent, &mut stream);
    assert_eq!(started["producer"]["manifest_uri"], uri.as_str());
    assert_eq!(started["producer"]["agent_name"], "Any Name", "nobody vouches for the manifest's name");
    assert_eq!(
        started["extensions"]["sayso"],
        json!({"states": states()}),
        "the manifest documents its states"
    );
    let session = started["session_id"].as_str().unwrap();
    let event = r#"{"type":"aaep:agent.state.changed","to_state":"auditing"}"#;
    agent.post(&format!("/agent/v1/sessions/{session}/events"), event);
    assert_eq!(stream.next().2["summary_normal"], "checking the books");
    assert_eq!(hub.client().send("POST", SERVED, "").status, 401);
    assert_eq!(
        agent.send("POST", PUBLISH, "").head.lines().find(|line| line.starts_with("Allow")),
        Some("Allow: PUT, DELETE")
    );

    hub.kill();
    let hub = deployment.start_hub(&[]);
    let agent = hub.client().with_bearer(&bank);
    assert_eq!(hub.client().get(SERVED).body, manifest("bank"), "a crash loses nothing");
    let replaced = manifest("bank").replace("help@", "desk@");
    assert_eq!(agent.send("PUT", PUBLISH, &replaced).status, 200);
    assert_eq!(hub.client().get(SERVED).body, replaced);
    assert_eq!(agent.send("DELETE", PUBLISH, "").status, 204);
    assert_eq!(agent.send("DELETE", PUBLISH, "").status, 204);
    assert_eq!(hub.client().get(SERVED).status, 404);
    let mut stream = open_stream(&hub.client().with_bearer(&ada));
    while !stream.next().2["type"].as_str().unwrap_or_default().contains("state.changed") {}
    assert_eq!(agent.send("PUT", PUBLISH, &replaced).status, 200, "it can be published again");
}

#[test]
fn a_signature_that_the_operator_trusts_verifies_the_name_in_a_manifest() {
    let deployment = Deployment::new();
    let (bank, ada) = (deployment.agent_token("bank"), deployment.listener_token());
    let signed = deployment.sign("author", &manifest("bank"));
    let foreign = deployment.sign("other", &manifest("bank"));
    let hub = deployment.start_hub(&["--manifests-keys", &deployment.text_path("author.jwk")]);
    let agent = hub.client().with_bearer(&bank);
    let refused = agent.send("PUT", PUBLISH, &foreign);
    assert_eq!(refused.status, 400);
    assert!(refused.body.contains("signature"), "{}", refused.body);
    assert_eq!(hub.client().get(SERVED).status, 404, "nothing was published");
    assert_eq!(agent.send("PUT", PUBLISH, &signed).json()["verified"], true);
    let served = hub.client().with_header("Accept: application/jose").get(SERVED);
    assert!(served.head.contains("Content-Type: application/jose\r\n"), "{}", served.head);
    assert_eq!(served.body, signed.trim());
    assert_eq!(hub.client().get(SERVED).body, manifest("bank"), "JSON by default");
    let mut stream = open_stream(&hub.client().with_bearer(&ada));
    let started = start_session(&agent, &mut stream);
    assert_eq!(started["producer"]["agent_name"], "Ada's Bank", "the agent cannot change it");
    let verified = json!({"verified_by": "signature", "contact": "help@bank.example"});
    assert_eq!(started["extensions"]["sayso"]["manifest"], verified);
    assert_eq!(started["extensions"]["sayso"]["verified_name"], true);
    assert_eq!(agent.send("PUT", PUBLISH, &manifest("bank")).json()["verified"], false);
    let started = start_session(&agent, &mut stream);
    assert_eq!(
        (&started["producer"]["agent_name"], &started["extensions"]["sayso"]["verified_name"]),
        (&"Any Name".into(), &Value::Null)
    );
}

#[test]
fn a_signature_counts_after_a_restart_only_if_its_key_is_still_trusted() {
    let deployment = Deployment::new();
    let (bank, ada) = (deployment.agent_token("bank"), deployment.listener_token());
    let signed = deployment.sign("author", &manifest("bank"));
    deployment.sign("other", &manifest("bank"));
    for (keys, name) in
        [("author.jwk", "Ada's Bank"), ("author.jwk", "Ada's Bank"), ("other.jwk", "Any Name")]
    {
        let hub = deployment.start_hub(&["--manifests-keys", &deployment.text_path(keys)]);
        let agent = hub.client().with_bearer(&bank);
        if hub.client().get(SERVED).status == 404 {
            assert_eq!(agent.send("PUT", PUBLISH, &signed).status, 200);
        }
        let mut stream = open_stream(&hub.client().with_bearer(&ada));
        agent.post("/agent/v1/sessions", SESSION);
        let started = loop {
            let event = stream.next().2;
            if event["type"] == "aaep:agent.session.started" {
                break event;
            }
        };
        assert_eq!(started["producer"]["agent_name"], name, "{keys}");
    }
}

#[test]
fn a_manifest_is_accepted_only_from_the_token_of_its_agent() {
    let deployment = Deployment::new();
    let (bank, ada) = (deployment.agent_token("bank"), deployment.listener_token());
    std::fs::create_dir(deployment.path("manifests")).unwrap();
    std::fs::write(deployment.path("manifests/post.json"), manifest("post")).unwrap();
    let post = deployment.agent_token("post");
    let hub = deployment.start_hub(&["--manifests-folder", &deployment.text_path("manifests")]);
    let [bank, ada, post] = [bank, ada, post].map(|token| hub.client().with_bearer(&token));
    for (who, client, agent, status, text) in [
        ("no token", &hub.client(), "bank", 401, "token"),
        ("a listener", &ada, "bank", 403, "does not allow"),
        ("another agent", &post, "bank", 400, "must be the token's"),
        ("as the hub", &bank, "sayso-hub", 400, "must be the token's"),
        ("against the operator", &post, "post", 400, "the operator of the hub has set the manifest"),
    ] {
        let refused = client.send("PUT", PUBLISH, &manifest(agent));
        assert_eq!(refused.status, status, "{who}: {}", refused.body);
        assert!(refused.body.contains(text), "{who}: {}", refused.body);
    }
    assert_eq!(ada.send("DELETE", PUBLISH, "").status, 403);
    assert_eq!(post.send("DELETE", PUBLISH, "").status, 204);
    assert_eq!(hub.client().get("/.well-known/aaep-manifests/post.json").status, 200, "the operator's stays");
    for (body, status, text) in [
        ("", 400, "empty"),
        ("{", 422, "JSON"),
        ("{}", 400, "is not a manifest"),
        ("a.b.c", 400, "compact JWS"),
        (r#"{"type":"subscription.close","subscription_id":"sub_1","reason_code":"x"}"#, 400, "manifest"),
        (&manifest("bank").replace("[1,2,3]", "[7]"), 422, "AAEP-5.10.1-1"),
        (&manifest("bank").replace("linked_sessions", "swarm"), 400, "multi_agent"),
        (&manifest("bank").replace("checking the books", ""), 400, "the words of a state"),
        (&manifest("bank").replace("Ada's Bank", "\u{200b}"), 400, "agent_name"),
        (&manifest("bank").replace("Ada's Bank", &"x".repeat(257)), 400, "agent_name"),
    ] {
        let refused = bank.send("PUT", PUBLISH, body);
        assert_eq!(refused.status, status, "{body}: {}", refused.body);
        assert!(refused.body.contains(text), "{body}: {}", refused.body);
    }
    assert_eq!(hub.client().get(SERVED).status, 404);
}

#[test]
fn the_operators_manifests_are_published_and_their_names_are_verified() {
    let deployment = Deployment::new();
    let (bank, ada) = (deployment.agent_token("bank"), deployment.listener_token());
    std::fs::create_dir(deployment.path("manifests")).unwrap();
    std::fs::write(deployment.path("manifests/bank.json"), manifest("bank")).unwrap();
    std::fs::write(deployment.path("manifests/notes.txt"), "not a manifest").unwrap();
    let odd = "a/b é";
    std::fs::write(deployment.path("manifests/odd.jws"), deployment.sign("author", &manifest(odd))).unwrap();
    let folder = deployment.text_path("manifests");
    let hub = deployment.start_hub(&["--manifests-folder", &folder]);
    assert_eq!(hub.client().get(SERVED).body, manifest("bank"));
    assert_eq!(hub.client().get("/.well-known/aaep-manifests/a%2Fb%20%C3%A9.json").body, manifest(odd));
    for other in ["a/b%20%C3%A9.json", "bank", "%62ank.json", "..", ""] {
        assert_eq!(hub.client().get(&format!("/.well-known/aaep-manifests/{other}")).status, 404, "{other}");
    }
    let mut stream = open_stream(&hub.client().with_bearer(&ada));
    let started = start_session(&hub.client().with_bearer(&bank), &mut stream);
    assert_eq!(started["producer"]["agent_name"], "Ada's Bank");
    assert_eq!(started["extensions"]["sayso"]["manifest"]["verified_by"], "hub");
    drop(hub);

    // Without tokens, every program can claim to be this agent, so the manifest proves nothing about it.
    let open = HubProcess::start_in_memory_with(&["--manifests-folder", &folder]);
    let mut stream = open_stream(&open.client());
    let session = SESSION.replace("Any Name", r#"Any Name","agent_id":"bank"#);
    assert_eq!(open.client().post("/agent/v1/sessions", &session).status, 201);
    let started = stream.next().2;
    assert_eq!(started["producer"]["agent_name"], "Any Name");
    assert_eq!(started["producer"]["manifest_uri"], format!("http://{}{SERVED}", open.address));
    assert_eq!(started["extensions"]["sayso"], json!({"states": states()}));
    drop(open);

    for (file, text, problem) in [
        ("bad.json", "{}".to_owned(), "bad.json: the manifest is not a manifest"),
        ("long.json", " ".repeat(64 * 1024 + 1), "longer than 65536 bytes"),
        ("second.json", manifest("bank"), "there are two manifests of the agent \"bank\""),
        ("hub.json", manifest("sayso-hub"), "the agent id \"sayso-hub\" is reserved"),
        ("other.jws", deployment.sign("other", &manifest("x")), "signature"),
    ] {
        let path = deployment.path("manifests").join(file);
        std::fs::write(&path, text).unwrap();
        let keys = deployment.text_path("author.jwk");
        for check in [&["--check"][..], &[]] {
            let arguments = [
                &["serve", "--open", "--memory", "--listen", "127.0.0.1:0", "--manifests-folder", &folder],
                &["--manifests-keys", &keys][..],
                check,
            ];
            let output = run_sayso(&arguments.concat(), "");
            assert_eq!(output.exit_code, 2, "{file}: {}", output.stdout);
            assert!(output.stderr.contains(problem), "{file}: {}", output.stderr);
        }
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn manifests_are_limited_in_size_and_number() {
    let hub = HubProcess::start_in_memory_with(&["--manifests-bytes", "1KiB", "--manifests-count", "2"]);
    let publish = |text: &str| hub.client().send("PUT", PUBLISH, text);
    for (agent, status) in [("a", 200), ("b", 200), ("c", 429), ("a", 200)] {
        assert_eq!(publish(&manifest(agent)).status, status, "{agent}");
    }
    let fitting = format!("{}{}", manifest("a"), " ".repeat(1000 - manifest("a").len()));
    assert_eq!(publish(&fitting).status, 200);
    let refused = publish(&format!("{fitting}{}", " ".repeat(25)));
    assert_eq!(refused.status, 400);
    assert!(refused.body.contains("at most 1024 bytes"), "{}", refused.body);
}

#[test]
fn a_manifest_is_published_over_the_websocket_too() {
    let hub = HubProcess::start_in_memory();
    let mut socket = super::agent_websocket::AgentWebSocket::open(&hub);
    let key = Deployment::new();
    for params in [
        json!({"manifest": serde_json::from_str::<Value>(&manifest("bank")).unwrap()}),
        json!({"manifest": key.sign("author", &manifest("bank")).trim()}),
    ] {
        let reply = socket.call("agent.manifest", &params);
        assert_eq!(reply["result"]["agent_id"], "bank", "{reply}");
        assert_eq!(
            hub.client().get(SERVED).json(),
            serde_json::from_str::<Value>(&manifest("bank")).unwrap()
        );
    }
}

#[test]
fn details_say_what_a_verified_manifest_says_about_the_agent() {
    let deployment = Deployment::new();
    let (bank, ada) = (deployment.agent_token("bank"), deployment.listener_token());
    std::fs::create_dir(deployment.path("manifests")).unwrap();
    std::fs::write(deployment.path("manifests/bank.json"), manifest("bank")).unwrap();
    let hub = deployment.start_hub(&["--manifests-folder", &deployment.text_path("manifests")]);
    std::fs::write(deployment.path("ada"), &ada).unwrap();
    let mut person =
        ListenProcess::start_connected(&hub.address, &["--token-file", &deployment.text_path("ada")]);
    let agent = hub.client().with_bearer(&bank);
    let session = agent.post("/agent/v1/sessions", SESSION).json_str("session_id");
    person.read_until("session: Ada's Bank has started");
    let question = r#"{"action":"Send 5 euros.","consequence":"It is gone.","timeout_seconds":120,"default_decision":"reject"}"#;
    agent.post(&format!("/agent/v1/sessions/{session}/confirmations"), question);
    person.read_until("ask: ");
    person.type_line("details");
    let lines = person.read_until("ask: Its manifest is verified. Contact: help@bank.example.");
    assert!(lines.iter().any(|line| line == "ask: The agent's id is bank."), "{lines:#?}");
}
