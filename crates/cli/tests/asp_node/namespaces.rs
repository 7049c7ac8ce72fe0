//! Two nodes on two machines: network namespaces with addresses of their own, and TLS between them. Needs root and `ip`, so
//! `cargo xtask namespaces` runs it, and reports it as skipped where namespaces cannot be created.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use testing::cli::{CommandOutput, binary, check_output, create_token, write_private_file};
use testing::hub::HubProcess;

use crate::script::verify;
use crate::test_node::poll;

const NAMES: [&str; 2] = ["buyer", "press"];
const ADDRESSES: [&str; 2] = ["10.213.77.1", "10.213.77.2"];
const PORT: u16 = 8788;

/// Two namespaces that are connected with each other and with nothing else.
struct Namespaces([String; 2]);

fn ip(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(arguments).output().map_err(|error| format!("ip: {error}"))?;
    let error = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.success() { Ok(()) } else { Err(format!("ip {}: {error}", arguments.join(" "))) }
}

impl Namespaces {
    fn create() -> Result<Self, String> {
        let names = NAMES.map(|name| format!("sayso-{name}-{}", std::process::id()));
        ip(&["netns", "add", &names[0]])?;
        ip(&["netns", "add", &names[1]]).inspect_err(|_| drop(ip(&["netns", "del", &names[0]])))?;
        let namespaces = Self(names);
        let [first, second] = &namespaces.0;
        ip(&[
            "link", "add", "veth0", "netns", first, "type", "veth", "peer", "name", "veth0", "netns", second,
        ])?;
        for (namespace, address) in namespaces.0.iter().zip(ADDRESSES) {
            ip(&["-n", namespace, "addr", "add", &format!("{address}/30"), "dev", "veth0"])?;
            for device in ["lo", "veth0"] {
                ip(&["-n", namespace, "link", "set", device, "up"])?;
            }
        }
        Ok(namespaces)
    }

    /// Returns a command for the binary in a namespace.
    fn command(&self, index: usize, arguments: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0[index]]).arg(binary()).args(arguments);
        command
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.0 {
            let _ = ip(&["netns", "del", name]);
        }
    }
}

/// The files of one agent.
struct Machine<'n> {
    namespaces: &'n Namespaces,
    index: usize,
    agent: String,
    token: String,
    /// The certificates of both machines.
    ca: String,
}

impl Machine<'_> {
    fn url(&self) -> String {
        format!("https://{}:{PORT}", ADDRESSES[self.index])
    }

    fn output(&self, arguments: &[&str]) -> Output {
        self.namespaces.command(self.index, arguments).env("SAYSO_TOKEN", &self.token).output().unwrap()
    }

    /// Runs one of the agent program's commands on its own machine.
    fn run(&self, arguments: &[&str]) -> String {
        let url = self.url();
        let output = self.output(&[&["asp"], arguments, &["--node", &url, "--ca", &self.ca]].concat());
        let CommandOutput { exit_code, stdout, stderr } = check_output(output);
        assert_eq!(exit_code, 0, "{arguments:?}: {stdout}{stderr}");
        stdout.trim().to_owned()
    }

    fn send(&self, session: &str, performative: &str, body: &Value) {
        self.run(&["send", session, performative, &body.to_string(), "--wait"]);
    }

    fn wait_for(&self, session: &str, is_met: impl Fn(&Value) -> bool) {
        poll("the state", || {
            let view: Value = serde_json::from_str(&self.run(&["show", session, "--json"])).unwrap();
            is_met(&view).then_some(())
        });
    }
}

fn create_certificate(folder: &Path, address: &str) -> String {
    let generated = rcgen::generate_simple_self_signed([address.to_owned()]).unwrap();
    std::fs::write(folder.join("tls.crt"), generated.cert.pem()).unwrap();
    write_private_file(&folder.join("tls.key"), &generated.signing_key.serialize_pem());
    generated.cert.pem()
}

#[test]
#[ignore = "needs root and ip; cargo xtask namespaces runs it"]
fn two_machines_negotiate_over_tls() {
    let namespaces = Namespaces::create().unwrap();
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let path = |index: usize, name: &str| folders[index].path().join(name).to_str().unwrap().to_owned();
    let agents = [0, 1].map(|index| format!("agent://{}:{PORT}/{}", ADDRESSES[index], NAMES[index]));
    let certificates = [0, 1].map(|index| create_certificate(folders[index].path(), ADDRESSES[index]));
    let machines = [0, 1].map(|index| {
        let output = Command::new(binary())
            .args(["asp", "keygen", "--agent", &agents[index], "--name", NAMES[index]])
            .args(["--out", &path(index, "identity")])
            .output()
            .unwrap();
        assert_eq!(check_output(output).exit_code, 0);
        std::fs::write(path(index, "peers"), path(1 - index, "identity/card.json")).unwrap();
        std::fs::write(path(index, "ca.pem"), certificates.concat()).unwrap();
        let token =
            create_token(&path(index, "tokens"), &["--role", "agent", "--agent-id", "a", "--name", "a"]);
        Machine {
            namespaces: &namespaces,
            index,
            agent: agents[index].clone(),
            token,
            ca: path(index, "ca.pem"),
        }
    });
    let _nodes = [0, 1].map(|index| {
        let listen = format!("{}:{PORT}", ADDRESSES[index]);
        let mut arguments = vec!["asp".to_owned(), "serve".to_owned(), "--listen".to_owned(), listen];
        for (option, file) in [
            ("--identity", "identity"),
            ("--peers", "peers"),
            ("--data", "data"),
            ("--tokens", "tokens"),
            ("--tls-cert", "tls.crt"),
            ("--tls-key", "tls.key"),
            ("--ca", "ca.pem"),
        ] {
            arguments.extend([option.to_owned(), path(index, file)]);
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        HubProcess::start_command(&mut namespaces.command(index, &arguments))
    });
    let [buyer, press] = &machines;

    // The card of the other machine, with and without the trusted certificate.
    let card = format!("{}/.well-known/asp-agent-card.json", press.url());
    let verified = check_output(buyer.output(&["asp", "card", "verify", &card, "--ca", &buyer.ca]));
    assert_eq!(verified.exit_code, 0, "{}", verified.stderr);
    let untrusted = check_output(buyer.output(&["asp", "card", "verify", &card]));
    assert_eq!(untrusted.exit_code, 2, "{}", untrusted.stdout);
    let plain = check_output(buyer.output(&["asp", "card", "verify", &card.replace("https", "http")]));
    assert_eq!(plain.exit_code, 2, "{}", plain.stdout);

    let session = buyer.run(&["invite", &press.agent, "menus in braille"]);
    let session = session.split_whitespace().last().unwrap().to_owned();
    poll("the invitation", || press.run(&["show"]).contains(&session).then_some(()));
    press.send(&session, "ACCEPT", &json!({"referenceId": format!("prop_{session}")}));
    buyer.wait_for(&session, |view| view["state"] == "INTRODUCED" && view["messageCount"] == 4);
    let proposal =
        json!({"proposalId": "prop_1", "type": "work", "subject": "menus", "terms": {"price": "10 EUR"}});
    buyer.send(&session, "PROPOSE", &proposal);
    press.send(&session, "ACCEPT", &json!({"referenceId": "prop_1"}));
    press.send(&session, "CLOSE", &json!({"reason": "done"}));
    for machine in &machines {
        machine.wait_for(&session, |view| view["state"] == "CLOSED" && view["unacknowledged"] == 0);
    }
    let transcripts = machines.each_ref().map(|machine| machine.run(&["transcript", &session]));
    assert_eq!(transcripts[0], transcripts[1]);
    assert_eq!(transcripts[0].lines().count(), 7);
    let cards: String =
        [0, 1].map(|index| std::fs::read_to_string(path(index, "identity/card.json")).unwrap()).concat();
    assert!(verify(&transcripts[0], &cards).contains("The session ended in state CLOSED"));
}
