//! SIGHUP: tokens and the certificate are read again, and nobody whose token holds notices.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::serve::agent_ws::Agent;
use crate::serve::sign_in::sign_in;
use testing::cli::token;
use testing::hub::Hub;
use testing::messages::CAN_REPLY;
use testing::websocket::{PROTOCOL, Socket};

const ADA: [&str; 4] = ["--role", "listener", "--name", "ada"];
const BEN: [&str; 4] = ["--role", "listener", "--name", "ben"];
const BANK: [&str; 6] = ["--role", "agent", "--name", "bank", "--agent-id", "bank"];
const POST: [&str; 6] = ["--role", "agent", "--name", "post", "--agent-id", "post"];

/// Nothing takes longer that comes at all.
const PATIENCE: std::time::Duration = std::time::Duration::from_mins(2);

/// A file of tokens.
struct File(PathBuf);

impl File {
    fn new(folder: &Path) -> Self {
        Self(folder.join("tokens"))
    }

    fn add(&self, rest: &[&str]) -> String {
        token(self.0.to_str().unwrap(), rest)
    }

    /// Takes a name out of it, as an operator would with an editor.
    fn remove(&self, name: &str) {
        let text = std::fs::read_to_string(&self.0).unwrap();
        let other = |line: &&str| !line.contains(&format!("\"name\":\"{name}\""));
        let left: String = text.split_inclusive('\n').filter(other).collect();
        assert_ne!(left, text);
        std::fs::write(&self.0, left).unwrap();
    }

    fn hub(&self) -> Hub {
        // Without signs of life, so that who waits in vain learns so.
        let quiet = ["--memory", "--listen", "127.0.0.1:0", "--http-heartbeat", "1h"];
        Hub::start(&[&quiet[..], &["--tokens", self.0.to_str().unwrap()]].concat())
    }
}

/// Tells a hub to read again, and returns what it says of it.
pub(crate) fn reload(hub: &Hub) -> String {
    hub.signal("-HUP");
    hub.logs("reload")
}

#[test]
fn a_new_token_is_known_and_a_removed_one_ends_all_that_it_opened() {
    let folder = tempfile::tempdir().unwrap();
    let file = File::new(folder.path());
    let [ada, ben, bank, post] = [&ADA[..], &BEN, &BANK, &POST].map(|rest| file.add(rest));
    let hub = file.hub();
    let bearer = |token: &str| hub.client().bearer(token);
    let hers = bearer(&ada).subscribe(CAN_REPLY);
    let mut her_ear = bearer(&ada).listen(&hers, None);
    let his = bearer(&ben).subscribe(CAN_REPLY);
    let mut his_ear = bearer(&ben).listen(&his, None);
    let authorization = format!("Bearer {ben}");
    let mut his_socket = Socket::connect(&hub, &[PROTOCOL, ("Authorization", &authorization)]).unwrap();
    his_socket.say(&testing::messages::request(CAN_REPLY));
    assert_eq!(his_socket.next()["type"], "subscription.accepted");
    let cookie = sign_in(&hub, &ben);
    let page =
        hub.client().with(&format!("Cookie: {cookie}")).with(&format!("Origin: http://{}", hub.address));
    page.subscribe(CAN_REPLY);
    let mut agents = [&bank, &post]
        .map(|token| Agent::connect(&hub, &[("Authorization", &format!("Bearer {token}"))]).unwrap());
    let session = agents[0].start();
    assert_eq!([her_ear.next_type(), his_ear.next_type()], ["session.started", "session.started"]);
    let asked = agents[0].ask(&session);
    let waiting = {
        let (post, session) = (bearer(&post), bearer(&post).start());
        let question = post.ask(&session);
        std::thread::spawn(move || {
            post.get(&format!("/agent/v1/sessions/{session}/replies/{question}?wait=60"))
        })
    };

    file.remove("ben");
    file.remove("post");
    let cem = file.add(&["--role", "listener", "--name", "cem"]);
    assert_eq!(bearer(&cem).post("/aaep/v1/subscriptions", "{}").status, 401, "not before it is told to");
    let said = reload(&hub);
    for part in ["reloaded", "what=tokens", "known=3", "added=1", "removed=2"] {
        assert!(said.contains(part), "{part}: {said}");
    }

    bearer(&cem).subscribe("{}");
    let last = std::iter::from_fn(|| Some(his_ear.next())).find(|(kind, ..)| kind == "subscription.close");
    assert_eq!(last.unwrap().2["reason_code"], "token_removed");
    assert!(his_ear.is_over());
    assert_eq!(his_socket.code(), 4002);
    assert_eq!(waiting.join().unwrap().status, 401, "also in the middle of a wait");
    let [mut stays, goes] = agents;
    assert_eq!(goes.code(), 4002);
    assert_eq!(bearer(&ben).reply(&his, &asked, "accept").status, 401);
    assert_eq!(page.post("/aaep/v1/subscriptions", "{}").status, 401, "his browser is signed out");
    assert_eq!(bearer(&post).post("/agent/v1/sessions", "{}").status, 401);

    assert_eq!(bearer(&ada).reply(&hers, &asked, "accept").status, 204, "hers is the same stream as before");
    let told = std::iter::from_fn(|| Some(her_ear.next()))
        .find(|(_, _, event)| event["extensions"]["sayso"]["reply_token"] == json!(asked));
    assert_eq!(told.unwrap().2["extensions"]["sayso"]["decision"], "accept");
    assert_eq!(stays.told()["params"]["decision"], "accept", "and the agent has its line");
}

#[test]
fn a_token_that_is_made_anew_or_may_less_does_not_keep_what_the_old_one_opened() {
    let folder = tempfile::tempdir().unwrap();
    let file = File::new(folder.path());
    let [ada, ben] = [&ADA, &BEN].map(|rest| file.add(rest));
    let hub = file.hub();
    let mut open = [&ada, &ben].map(|token| {
        let client = hub.client().bearer(token);
        let subscription = client.subscribe("{}");
        let ear = client.listen(&subscription, None);
        (subscription, ear)
    });
    file.remove("ada");
    let anew = file.add(&ADA);
    // The same token, for less.
    let text = std::fs::read_to_string(&file.0).unwrap();
    let lessen = |line: &str| {
        if line.contains("\"ben\"") { line.replace("listener", "observer") } else { line.to_owned() }
    };
    let less: String = text.split_inclusive('\n').map(lessen).collect();
    assert_ne!(less, text);
    std::fs::write(&file.0, less).unwrap();
    assert!(reload(&hub).contains("added=2 removed=2"));
    for (_, ear) in &mut open {
        assert_eq!(ear.next().2["reason_code"], "token_removed");
        assert!(ear.is_over());
    }
    assert_eq!(hub.client().bearer(&ada).post("/aaep/v1/subscriptions", "{}").status, 401);
    for (token, (subscription, _)) in [&anew, &ben].into_iter().zip(&open) {
        let client = hub.client().bearer(token);
        let old = client.with("Accept: text/event-stream");
        assert_eq!(old.get(&format!("/aaep/v1/events?subscription_id={subscription}")).status, 404);
        client.subscribe("{}");
    }
}

#[test]
fn rights_that_were_taken_while_the_hub_was_away_do_not_come_back_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = File::new(folder.path());
    let data = folder.path().join("data");
    let arguments =
        ["--listen", "127.0.0.1:0", "--data", data.to_str().unwrap(), "--tokens", file.0.to_str().unwrap()];
    let ada = file.add(&ADA);
    let mut hub = Hub::start(&arguments);
    let subscription = hub.client().bearer(&ada).subscribe(CAN_REPLY);
    hub.kill();
    file.remove("ada");
    let less = file.add(&["--role", "listener", "--name", "ada", "--scope", "agent:post"]);
    let hub = Hub::start(&arguments);
    let client = hub.client().bearer(&less).with("Accept: text/event-stream");
    assert_eq!(client.get(&format!("/aaep/v1/events?subscription_id={subscription}")).status, 404);
}

#[test]
fn a_file_that_is_wrong_leaves_the_old_tokens_in_force_and_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = File::new(folder.path());
    let ada = file.add(&ADA);
    let mut hub = file.hub();
    let client = hub.client().bearer(&ada);
    let mut ear = client.listen(&client.subscribe("{}"), None);
    let good = std::fs::read_to_string(&file.0).unwrap();
    let wrong: [(&dyn Fn(), &str); 3] = [
        (&|| std::fs::write(&file.0, format!("{good}nonsense\n")).unwrap(), "tokens:2: not a token"),
        (&|| std::fs::remove_file(&file.0).unwrap(), "no such file"),
        (
            &|| {
                use std::os::unix::fs::PermissionsExt as _;
                std::fs::write(&file.0, &good).unwrap();
                std::fs::set_permissions(&file.0, std::fs::Permissions::from_mode(0o644)).unwrap();
            },
            "chmod 600",
        ),
    ];
    for (spoil, why) in wrong {
        spoil();
        let said = reload(&hub);
        for part in ["error reload.failed what=tokens", why, "stays in force"] {
            assert!(said.to_lowercase().contains(part), "{part}: {said}");
        }
        client.subscribe("{}");
    }
    std::fs::remove_file(&file.0).unwrap();
    let bank = file.add(&BANK);
    std::fs::write(&file.0, good + &std::fs::read_to_string(&file.0).unwrap()).unwrap();
    assert!(reload(&hub).contains("known=2 added=1 removed=0"));
    hub.client().bearer(&bank).start();
    assert_eq!(ear.next_type(), "session.started", "the stream from the beginning");
    assert_eq!(hub.stop(), 0);
}

#[test]
fn where_there_is_nothing_to_read_again_that_is_told() {
    let mut hub = Hub::open();
    assert!(reload(&hub).contains("what=nothing"));
    assert_eq!(hub.client().get("/healthz").status, 200);
    assert_eq!(hub.stop(), 0);
}

#[test]
fn a_terminal_that_is_closed_ends_the_hub_as_before() {
    use std::fs::File;
    use std::io::{BufRead, BufReader, IsTerminal};
    use std::process::Stdio;
    use std::sync::mpsc::channel;
    use std::time::{Duration, Instant};

    let (master, name) = testing::terminal::pseudo_terminal();
    let terminal = File::options().read(true).write(true).open(&name).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_sayso"));
    command.args(["serve", "--memory", "--open", "--listen", "127.0.0.1:0"]);
    command.stdin(terminal.try_clone().unwrap()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let (tell, said) = channel();
    std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| tell.send(line)));
    let mut says = |part: &str| loop {
        let Ok(line) = said.recv_timeout(PATIENCE) else {
            child.kill().unwrap();
            panic!("no {part}");
        };
        if line.contains(part) {
            return child.id().to_string();
        }
    };
    let hang_up = |id: &str| testing::cli::signal(id, "-HUP");
    hang_up(&says("listening on "));
    let id = says("reloaded");
    drop(master);
    // A process that another test is just starting may hold a copy for a moment.
    let until = Instant::now() + PATIENCE;
    while terminal.is_terminal() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    hang_up(&id);
    says("stopping");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn making_a_token_says_how_a_hub_that_runs_learns_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens");
    let made = testing::cli::sayso(
        &["token", "new", "--tokens", file.to_str().unwrap(), "--role", "listener", "--name", "ada"],
        "",
    );
    assert_eq!((made.code, made.out.lines().count()), (0, 1));
    assert!(made.err.contains("kill -HUP"), "{}", made.err);
}
