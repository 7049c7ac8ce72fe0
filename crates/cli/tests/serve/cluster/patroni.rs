//! Two nodes with a database that Patroni manages: agents and a listener work while the machine of the primary is lost.
//! `cargo xtask patroni` installs the programs and runs this test.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use testing::http::EventStream;
use testing::hub::HubProcess;
use testing::patroni::PatroniCluster;

use super::campaign::{Agent, SHORT_QUESTION, announcements_of_default, repeat};
use super::*;

/// How many events are acknowledged before the failover, and after it, at least.
const EVENTS: usize = 20;

#[test]
#[ignore = "needs Debian's patroni and etcd-server, which `cargo xtask patroni` installs"]
fn nothing_acknowledged_is_lost_when_patroni_promotes_the_standby() {
    if let Some(program) = testing::patroni::missing_program() {
        eprintln!("skipped: this test needs {program}; run `cargo xtask patroni`");
        return;
    }
    let mut database = PatroniCluster::start();
    for sql in ["CREATE USER sayso", "CREATE DATABASE sayso OWNER sayso"] {
        database.try_sql("postgres", sql).expect("the primary accepts writes");
    }
    let folder = tempfile::tempdir().unwrap();
    let address = database.address("sayso", "sayso");
    let nodes = ["a", "b"].map(|name| start_node(name, &address, &folder.path().join(name)));
    let clients = [nodes[0].client(), nodes[1].client()];
    let wait_until_ready = || {
        wait_until("all nodes are ready", || {
            let is_ready = |client: &TestClient| {
                client.try_send("GET", "/readyz", "").is_some_and(|response| response.status == 200)
            };
            clients.iter().all(is_ready)
        });
    };
    wait_until_ready();
    let mut agent = repeat(|| Agent::start((&clients[0], "ada")));
    let unanswered = repeat(|| clients[1].start_session());
    let subscription = repeat(|| clients[1].subscribe(REPLY_CAPABILITIES));
    let (is_over, is_heard, count) = (AtomicBool::new(false), AtomicBool::new(false), AtomicUsize::new(0));
    let heard = Mutex::new(HashSet::new());
    let mut asked = String::new();
    // Only what happens after the stream is open is delivered.
    let stream = repeat(|| clients[1].open_event_stream(&subscription, None));
    let result = std::thread::scope(|scope| {
        let (clients, is_over, count, agent) = (&clients, &is_over, &count, &mut agent);
        let listener = scope.spawn(|| listen(stream, (&clients[1], &subscription), &is_heard, &heard));
        let worker = scope.spawn(move || {
            agent.work(clients, 0, is_over, count);
            agent
        });
        let wait_for_events = |what| {
            let before = count.load(Ordering::SeqCst);
            wait_until(what, || count.load(Ordering::SeqCst) >= before + EVENTS || worker.is_finished());
        };
        let result = catch_unwind(AssertUnwindSafe(|| {
            wait_for_events("events are acknowledged");
            asked = repeat(|| {
                let path = format!("/agent/v1/sessions/{unanswered}/confirmations");
                let question = clients[0].post(&path, SHORT_QUESTION);
                assert_eq!(question.status, 201, "{question:?}");
                question.json_str("reply_token")
            });
            let killed_at = Instant::now();
            let killed = database.kill_primary();
            // With one server left, every commit waits for a standby. The lost machine becomes one when it is back.
            database.run(killed);
            wait_for_events("events are acknowledged after the failover");
            println!("{EVENTS} events were acknowledged {:?} after the kill", killed_at.elapsed());
        }));
        is_over.store(true, Ordering::SeqCst);
        let result = result.and_then(|()| {
            let agent = worker.join()?;
            catch_unwind(AssertUnwindSafe(|| {
                let deadline = Instant::now() + Duration::from_secs(20);
                loop {
                    let missed: Vec<_> = {
                        let heard = heard.lock().unwrap();
                        let events = agent.acknowledged.events.iter().enumerate();
                        events.filter(|(_, id)| !heard.contains(*id)).collect()
                    };
                    if missed.is_empty() {
                        break;
                    }
                    let total = agent.acknowledged.events.len();
                    assert!(Instant::now() < deadline, "the listener missed {missed:?} of {total}");
                    std::thread::sleep(Duration::from_millis(10));
                }
            }))
        });
        // The listener looks at this when it reads the next line, at the latest a heartbeat.
        is_heard.store(true, Ordering::SeqCst);
        result.and(listener.join())
    });
    if let Err(failure) = result {
        resume_unwind(failure);
    }
    wait_until_ready();
    database.wait_for_standby();
    for client in &clients {
        agent.assert_nothing_is_lost(client);
    }
    assert_eq!(repeat(|| clients[0].get(&reply_path(&unanswered, &asked)).json_str("decision")), "reject");
    let announced = database.try_sql("sayso", &announcements_of_default(&unanswered));
    assert_eq!(announced.as_deref(), Some("1"), "the deadline fires once");
    assert!(agent.acknowledged.accepted_count() > 1, "too little was acknowledged for a meaningful test");
    let timeline = database.try_sql("sayso", "SELECT timeline_id > 1 FROM pg_control_checkpoint()");
    assert_eq!(timeline.as_deref(), Some("t"), "the standby was promoted");
}

fn start_node(name: &str, database: &str, folder: &std::path::Path) -> HubProcess {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sayso"));
    command.args(["serve", "--cluster", "--cluster-node", name, "--open", "--listen", &reserved_address()]);
    command.args(["--cluster-listen", &reserved_address(), "--journal", database, "--journal-replicas", "1"]);
    command.args(["--hub-questions-per-minute", "1000000", "--hub-total-questions-per-minute", "1000000"]);
    HubProcess::start_command(command.arg("--data").arg(folder))
}

/// Hears everything until the flag is set. When the stream ends, resumes after the last event.
fn listen(
    mut stream: EventStream,
    (client, subscription): (&TestClient, &str),
    is_over: &AtomicBool,
    heard: &Mutex<HashSet<String>>,
) {
    let mut position = String::new();
    loop {
        let mut id = String::new();
        while let Ok(Some(line)) = stream.try_next_line() {
            if is_over.load(Ordering::SeqCst) {
                return;
            }
            if let Some(event_id) = line.strip_prefix("id: ") {
                event_id.clone_into(&mut id);
            } else if let Some(data) = line.strip_prefix("data: ") {
                let event: serde_json::Value = serde_json::from_str(data).unwrap();
                if let Some(event_id) = event["event_id"].as_str() {
                    let is_new = heard.lock().unwrap().insert(event_id.to_owned());
                    assert!(is_new, "heard twice: {event_id}");
                }
                position.clone_from(&id);
            }
        }
        stream = loop {
            if is_over.load(Ordering::SeqCst) {
                return;
            }
            let last_event_id = (!position.is_empty()).then_some(position.as_str());
            let opened =
                catch_unwind(AssertUnwindSafe(|| client.open_event_stream(subscription, last_event_id)));
            if let Ok(opened) = opened {
                break opened;
            }
            std::thread::sleep(Duration::from_millis(200));
        };
    }
}
