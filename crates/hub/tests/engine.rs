//! Turns on the caller's thread and on the hub's own thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, SystemTime};

use aaep::event::Producer;
use hub::command::{HubCommand, HubReply, Request, RequestId, TurnOutput};
use hub::telemetry::LogEvent;
use hub::{Core, Engine, HubLimits, Principal};
use journal::MemoryJournal;
use seal::UnixMillis;

/// Longer than any of these tests takes, and shorter than the engine's thread would sleep.
const TIMEOUT: Duration = Duration::from_mins(5);
const HOUR_MS: i64 = 3_600_000;
/// A plausible start time.
const START: UnixMillis = UnixMillis::new(1_767_603_600_000);

fn new_core(lease_ms: i64, now: UnixMillis) -> Core {
    let limits =
        HubLimits { lease_ms, max_sleep_ms: HOUR_MS, trim_interval_ms: HOUR_MS, ..HubLimits::default() };
    let mut state = 7_u64;
    let random = move |bytes: &mut [u8]| {
        for byte in bytes {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte = state.to_be_bytes()[3];
        }
    };
    Core::new(Box::new(MemoryJournal::default()), Producer::new("hub"), limits, random, now).unwrap()
}

fn start_engine(
    core: Core,
    clock: impl Fn() -> UnixMillis + Send + 'static,
) -> (Engine, Receiver<Vec<TurnOutput>>) {
    let (sender, receiver) = channel();
    let (engine, _) =
        Engine::start(core, clock, move |outputs| drop(sender.send(std::mem::take(outputs)))).unwrap();
    (engine, receiver)
}

fn clock() -> UnixMillis {
    SystemTime::now().into()
}

fn request(command: HubCommand) -> Request {
    static NEXT_NUMBER: AtomicU64 = AtomicU64::new(1);
    let id = RequestId(NEXT_NUMBER.fetch_add(1, Ordering::Relaxed));
    Request { id, principal: Principal::local(), command }
}

fn start_request() -> Request {
    let text = r#"{"summary_normal":"Moving money.","localization_hints":{"primary_language":"en"}}"#;
    request(HubCommand::Start { body: text.into(), idempotency_key: None })
}

/// Returns the requests that started a session.
fn started_by(outputs: &[TurnOutput]) -> Vec<RequestId> {
    let started_request = |output: &TurnOutput| match output {
        TurnOutput::Reply(id, HubReply::SessionStarted { .. }) => Some(*id),
        _ => None,
    };
    outputs.iter().filter_map(started_request).collect()
}

fn ended_count(outputs: &[TurnOutput]) -> usize {
    outputs.iter().filter(|output| matches!(output, TurnOutput::Log(LogEvent::SessionEnded(_)))).count()
}

#[test]
fn outputs_are_performed_before_run_turn_returns() {
    let (engine, receiver) = start_engine(new_core(HOUR_MS, clock()), clock);
    for _ in 0..3 {
        let request = start_request();
        let id = request.id;
        assert!(engine.run_turn(request));
        assert_eq!(started_by(&receiver.try_recv().unwrap()), [id]);
    }
}

#[test]
fn overdue_work_is_done_before_the_first_request() {
    let mut core = new_core(1000, START);
    assert_eq!(started_by(&core.run_turn([start_request()], START)).len(), 1);
    let (sender, receiver) = channel();
    let perform = move |outputs: &mut Vec<TurnOutput>| {
        let _ = sender.send((std::thread::current().id(), ended_count(outputs)));
    };
    let _engine = Engine::start(core, || START + HOUR_MS, perform).unwrap();
    // The thread that starts the engine does the work, not the engine's own thread.
    assert_eq!(receiver.recv_timeout(TIMEOUT).unwrap(), (std::thread::current().id(), 1));
}

#[test]
fn an_inline_turn_also_runs_due_timers() {
    let time = Arc::new(AtomicI64::new(START.get()));
    let clock_time = time.clone();
    let (engine, receiver) =
        start_engine(new_core(HOUR_MS, START), move || UnixMillis::new(clock_time.load(Ordering::Relaxed)));
    assert!(engine.run_turn(start_request()));
    assert_eq!(ended_count(&receiver.try_recv().unwrap()), 0);
    // The engine's thread is still asleep, because it waits in real time and no real hour has passed.
    time.store((START + HOUR_MS).get(), Ordering::Relaxed);
    assert!(engine.run_turn(start_request()));
    assert_eq!(ended_count(&receiver.try_recv().unwrap()), 1);
}

#[test]
fn the_thread_wakes_for_deadlines_set_by_an_inline_turn() {
    let (clock_sender, clock_reads) = channel();
    let (engine, receiver) = start_engine(new_core(50, clock()), move || {
        let _ = clock_sender.send(());
        clock()
    });
    // The engine reads the clock for its first turn and again before it sleeps; then nothing is due for an hour.
    for _ in 0..2 {
        clock_reads.recv_timeout(TIMEOUT).unwrap();
    }
    assert!(engine.run_turn(start_request()));
    while ended_count(&receiver.recv_timeout(TIMEOUT).expect("the lease expires")) == 0 {}
}

#[test]
fn no_turn_runs_after_a_panic() {
    let (engine, _) = Engine::start(new_core(HOUR_MS, START), || START, |_| panic!("on purpose")).unwrap();
    let failing = engine.clone();
    assert!(std::thread::spawn(move || failing.run_turn(start_request())).join().is_err());
    assert!(!engine.run_turn(start_request()));
}

#[test]
fn inline_and_threaded_turns_run_one_at_a_time_without_loss() {
    let (engine, receiver) = start_engine(new_core(HOUR_MS, clock()), clock);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let engine = &engine;
            scope.spawn(move || {
                for _ in 0..50 {
                    assert!(if thread % 2 == 0 {
                        engine.run_turn(start_request())
                    } else {
                        engine.submit(start_request())
                    });
                }
            });
        }
    });
    let mut replied = 0;
    while replied < 200 {
        let outputs = receiver.recv_timeout(TIMEOUT).unwrap();
        let is_refusal = |output: &&TurnOutput| matches!(output, TurnOutput::Reply(_, reply) if !matches!(reply, HubReply::SessionStarted { .. }));
        assert_eq!(outputs.iter().find(is_refusal), None);
        replied += started_by(&outputs).len();
    }
}
