//! Two nodes with a database that Patroni manages: agents and a listener work while the machine of the primary is lost.
//! `cargo xtask patroni` installs the programs and runs this test.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use testing::hub::HubProcess;
use testing::patroni::PatroniCluster;

use super::campaign::{Agent, SHORT_QUESTION, announcements_of_default, repeat};
use super::listener::PersistentListener;
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
    let listener = PersistentListener::start(vec![clients[1].clone(), clients[0].clone()]);
    let (is_over, count) = (AtomicBool::new(false), AtomicUsize::new(0));
    let mut asked = String::new();
    let result = std::thread::scope(|scope| {
        let (clients, is_over, count, agent) = (&clients, &is_over, &count, &mut agent);
        let worker = scope.spawn(move || {
            agent.work(clients, 0, is_over, count);
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
        let agent = worker.join();
        result.and(agent)
    });
    if let Err(failure) = result {
        resume_unwind(failure);
    }
    wait_until_ready();
    agent.assert_heard_by(&listener);
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
