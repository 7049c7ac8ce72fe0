//! Whatever a framework does: what listeners hear is lawful, and ends exactly once.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::stream;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use sayso::bridge::{Allowed, Bridge, Gate, Reply, Step, Unasked};
use sayso::callbacks::{Callbacks, Narration, Plan};
use sayso::{Action, Clarified, HandOff, Progress, Question, Target};
use serde_json::json;
use tokio::sync::mpsc;

use crate::support::stage::{Kind, Person, Stage};

/// What a framework may do, with one of few runs.
#[derive(Clone, Debug)]
enum Act {
    Start,
    Think,
    Decide,
    Progress,
    Tool(u8),
    Ask(u8),
    Done(u8),
    Failed(u8),
    TimedOut(u8),
    Output(&'static str),
    Bytes(Vec<u8>),
    OutputDone,
    Clarify,
    HandOff,
    /// Waits for the question that is open longest.
    Wait,
    /// Waits for it no more.
    Leave,
    Finish,
    Fail,
    Cancel,
}

fn act() -> impl Strategy<Value = Act> {
    let run = 0..3_u8;
    prop_oneof![
        2 => Just(Act::Think),
        1 => Just(Act::Start),
        1 => Just(Act::Decide),
        1 => Just(Act::Progress),
        4 => run.clone().prop_map(Act::Tool),
        3 => run.clone().prop_map(Act::Ask),
        4 => run.clone().prop_map(Act::Done),
        2 => run.clone().prop_map(Act::Failed),
        1 => run.prop_map(Act::TimedOut),
        4 => prop::sample::select(vec!["", " ", "A word. ", "\u{1f600}", "password: hunter2"]).prop_map(Act::Output),
        1 => prop::collection::vec(prop::sample::select(b"a \xc3\xaf\xf0\x9f\x98\x80\xff".to_vec()), 0..8).prop_map(Act::Bytes),
        1 => Just(Act::OutputDone),
        1 => Just(Act::Clarify),
        1 => Just(Act::HandOff),
        2 => Just(Act::Wait),
        1 => Just(Act::Leave),
        1 => prop_oneof![Just(Act::Finish), Just(Act::Fail), Just(Act::Cancel)],
    ]
}

/// What the person says to each question, in turn.
type Answers = Vec<Option<bool>>;

/// Whether it begins as it should, what is done, and what is answered.
fn story() -> impl Strategy<Value = (bool, Vec<Act>, Answers)> {
    (
        prop::bool::weighted(0.9),
        prop::collection::vec(act(), 0..24),
        prop::collection::vec(any::<Option<bool>>(), 0..6),
    )
}

fn action(run: u8) -> Action {
    Action::new("send", run.to_string()).says("Send money.").consequence("It is gone.").irreversible()
}

fn step(act: &Act, stage: &Stage, waits: &mut VecDeque<Waits>) -> Option<Step> {
    Some(match act {
        Act::Start => Step::start(stage.hub.session("Pay Ben.")),
        Act::Think => Step::think("Thinking."),
        Act::Decide => Step::decide("Deciding."),
        Act::Progress => Step::progress(Progress::says("Going on.")),
        Act::Tool(run) => Step::tool(run.to_string(), Unasked::new("look")),
        Act::Done(run) => Step::done(run.to_string(), "Done."),
        Act::Failed(run) => Step::failed(run.to_string(), "It failed."),
        Act::TimedOut(run) => Step::timed_out(run.to_string()),
        Act::Output(text) => Step::output(*text),
        Act::Bytes(bytes) => Step::bytes(bytes.clone()),
        Act::OutputDone => Step::output_done(),
        Act::HandOff => Step::hand_off(HandOff::to(Target::Human, "Somebody else.")),
        Act::Finish => Step::finish("Done."),
        Act::Fail => Step::fail("It failed."),
        Act::Cancel => Step::cancel("Given up."),
        Act::Ask(run) => {
            let (reply, gate) = Reply::gate();
            waits.push_back(Waits::Allowed(gate));
            Step::ask(run.to_string(), action(*run), reply)
        }
        Act::Clarify => {
            let (reply, gate) = Reply::gate();
            waits.push_back(Waits::Clarified(gate));
            Step::clarify(Question::new("Which Ben?"), reply)
        }
        Act::Wait | Act::Leave => return None,
    })
}

enum Waits {
    Allowed(Gate<Allowed>),
    Clarified(Gate<Clarified>),
}

/// Some questions are never answered: nobody waits for long.
async fn wait(waits: &mut VecDeque<Waits>) {
    let waiting = async {
        match waits.pop_front() {
            Some(Waits::Allowed(gate)) => drop(gate.await),
            Some(Waits::Clarified(gate)) => drop(gate.await),
            None => {}
        }
    };
    let _ = tokio::time::timeout(Duration::from_millis(30), waiting).await;
}

/// The acts as steps of a bridge.
async fn bridge(acts: &[Act], stage: &Stage) {
    let (steps, mut queue) = mpsc::unbounded_channel();
    let queue = stream::poll_fn(move |context| queue.poll_recv(context));
    let running = tokio::spawn(Bridge::new().run(queue, |step| [step]));
    let mut waits = VecDeque::new();
    for act in acts {
        match step(act, stage, &mut waits) {
            // It may be over.
            Some(step) => drop(steps.send(step)),
            None if matches!(act, Act::Leave) => drop(waits.pop_front()),
            None => wait(&mut waits).await,
        }
    }
    drop(steps);
    drop(running.await.unwrap());
}

/// The acts as callbacks, as far as there are callbacks for them.
async fn callbacks(acts: &[Act], stage: &Stage) {
    let plan = |tool: &str, input: &str| -> Plan {
        match tool {
            "send" => action(input.parse().unwrap()).into(),
            _ => Unasked::new(tool).into(),
        }
    };
    let (narrator, telling) = Narration::on(&stage.hub).tools(plan).open();
    let running = tokio::spawn(telling);
    let mut waits = VecDeque::new();
    for act in acts {
        // It may be over.
        let _ = match act {
            Act::Start => narrator.on_chain_start("c", "Pay Ben."),
            Act::Decide => narrator.on_chain_start("inner", "A part."),
            Act::Progress => narrator.on_chain_end("inner", "Done."),
            Act::Think => narrator.on_llm_start("m", "Think."),
            Act::Tool(run) => {
                waits.push_back(Waits::Allowed(narrator.on_tool_start(&run.to_string(), "look", "")));
                Ok(())
            }
            Act::Ask(run) => {
                let gate = narrator.on_tool_start(&run.to_string(), "send", &run.to_string());
                waits.push_back(Waits::Allowed(gate));
                Ok(())
            }
            Act::Done(run) => narrator.on_tool_end(&run.to_string(), "Done."),
            Act::Failed(run) | Act::TimedOut(run) => narrator.on_tool_error(&run.to_string(), "It failed."),
            Act::Output(text) => narrator.on_llm_new_token("m", text),
            Act::Bytes(bytes) => narrator.on_llm_new_token("n", &String::from_utf8_lossy(bytes)),
            Act::Finish => narrator.on_chain_end("c", "Done."),
            Act::Fail => narrator.on_chain_error("c", "It failed."),
            Act::Wait => {
                wait(&mut waits).await;
                Ok(())
            }
            Act::Leave => {
                drop(waits.pop_front());
                Ok(())
            }
            Act::OutputDone | Act::Clarify | Act::HandOff | Act::Cancel => Ok(()),
        };
    }
    drop(narrator);
    drop(running.await.unwrap());
}

/// How often sessions began and ended, as the person heard it, who judges every event at the end.
async fn hears(person: &mut Person, answers: &Answers) -> (usize, usize) {
    let mut answers = answers.iter();
    let (mut begun, mut ended, mut over) = (0, 0, false);
    loop {
        let event = person.hears().await;
        match event["type"].as_str().unwrap().trim_start_matches("aaep:agent.") {
            "session.started" => begun += 1,
            "session.completed" | "session.errored" | "session.cancelled" => ended += 1,
            "awaiting.confirmation" => {
                if let Some(Some(yes)) = answers.next() {
                    person.answers(&event, if *yes { "accept" } else { "reject" }).await;
                }
            }
            "awaiting.clarification" => {
                if let Some(Some(_)) = answers.next() {
                    person.clarifies(&event, json!("Ben Okri")).await;
                }
            }
            _ => {}
        }
        over |= event["summary_normal"] == AFTERWARDS;
        // A session that was left may be ended after another has been.
        if over && ended >= begun {
            person.judges();
            return (begun - 1, ended - 1);
        }
    }
}

/// The last thing that is said.
const AFTERWARDS: &str = "This is the end.";

fn whatever(kind: Kind, cases: u32, chains: bool, play: &impl AsyncFn(&[Act], &Stage)) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let told = TestRunner::new(config).run(&story(), |(begins, mut acts, answers)| {
        if begins {
            acts.insert(0, Act::Start);
        }
        // The first chain of all is the session.
        let is_start = |act: &Act| matches!(act, Act::Start) || chains && matches!(act, Act::Decide);
        let started = acts.iter().any(is_start);
        let heard = runtime.block_on(async {
            let mut stage = Stage::new(kind).await;
            let mut person = Person::listen(&stage.address()).await;
            std::mem::swap(&mut person, &mut stage.person);
            // Warnings about the state of a call where several questions are open, or one is just being answered.
            person.excuses("AAEP-A.4-2");
            person.excuses("AAEP-9.3.1-2");
            person.defers();
            let playing = async {
                play(&acts, &stage).await;
                stage.hub.session("Afterwards.").start().await.unwrap().finish(AFTERWARDS).await.unwrap();
            };
            tokio::join!(playing, hears(&mut person, &answers)).1
        });
        prop_assert_eq!(heard, (usize::from(started), usize::from(started)));
        Ok(())
    });
    told.unwrap();
}

#[test]
fn whatever_callbacks_do_is_lawful_and_ends_once() {
    whatever(Kind::Embedded, 96, true, &callbacks);
}

#[test]
fn whatever_callbacks_do_is_lawful_and_ends_once_behind_a_socket() {
    whatever(Kind::Client, 24, true, &callbacks);
}

#[test]
fn whatever_a_bridge_carries_is_lawful_and_ends_once() {
    whatever(Kind::Embedded, 96, false, &bridge);
}

#[test]
fn whatever_a_bridge_carries_is_lawful_and_ends_once_behind_a_socket() {
    whatever(Kind::Client, 24, false, &bridge);
}
