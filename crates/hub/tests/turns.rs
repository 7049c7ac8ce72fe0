//! Turns that are taken where somebody asks, beside those of the hub's thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, SystemTime};

use aaep::event::Producer;
use hub::command::{Command, Output, Reply, Request, RequestId};
use hub::watch::Note;
use hub::{Core, Engine, Limits, Principal};
use journal::Memory;
use seal::UnixMillis;

/// Longer than anything here takes, and shorter than the thread would sleep.
const PATIENCE: Duration = Duration::from_mins(5);
const HOUR: i64 = 3_600_000;
/// A time at which a hub could run.
const THEN: UnixMillis = UnixMillis::new(1_767_603_600_000);

fn core(lease: i64, now: UnixMillis) -> Core {
    let limits = Limits { lease, longest_sleep: HOUR, trim_every: HOUR, ..Limits::default() };
    let mut state = 7_u64;
    let random = move |bytes: &mut [u8]| {
        for byte in bytes {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte = state.to_be_bytes()[3];
        }
    };
    Core::new(Box::new(Memory::default()), Producer::new("hub"), limits, random, now).unwrap()
}

fn engine(core: Core, clock: impl Fn() -> UnixMillis + Send + 'static) -> (Engine, Receiver<Vec<Output>>) {
    let (tell, told) = channel();
    let (engine, _) =
        Engine::start(core, clock, move |outputs| drop(tell.send(std::mem::take(outputs)))).unwrap();
    (engine, told)
}

fn clock() -> UnixMillis {
    SystemTime::now().into()
}

fn request(command: Command) -> Request {
    static NUMBERS: AtomicU64 = AtomicU64::new(1);
    let id = RequestId(NUMBERS.fetch_add(1, Ordering::Relaxed));
    Request { id, who: Principal::anybody(), command }
}

fn start() -> Request {
    let text = r#"{"summary_normal":"Moving money.","localization_hints":{"primary_language":"en"}}"#;
    request(Command::Start { body: text.into(), key: None })
}

fn answers(outputs: &[Output]) -> Vec<RequestId> {
    let answer = |output: &Output| match output {
        Output::Reply(id, Reply::QuestionOpened { .. } | Reply::SessionStarted { .. }) => Some(*id),
        _ => None,
    };
    outputs.iter().filter_map(answer).collect()
}

fn ended(outputs: &[Output]) -> usize {
    outputs.iter().filter(|output| matches!(output, Output::Note(Note::SessionEnded(_)))).count()
}

#[test]
fn what_follows_from_a_turn_is_done_when_it_returns() {
    let (engine, told) = engine(core(HOUR, clock()), clock);
    for _ in 0..3 {
        let request = start();
        let id = request.id;
        assert!(engine.turn(request));
        assert_eq!(answers(&told.try_recv().unwrap()), [id]);
    }
}

#[test]
fn what_was_due_while_nobody_was_here_is_done_before_anybody_is_heard() {
    let mut core = core(1000, THEN);
    assert_eq!(answers(&core.turn([start()], THEN)).len(), 1);
    let (tell, told) = channel();
    let perform = move |outputs: &mut Vec<Output>| {
        let _ = tell.send((std::thread::current().id(), ended(outputs)));
    };
    let _engine = Engine::start(core, || THEN + HOUR, perform).unwrap();
    // Whoever starts it does it, not the thread that has just begun.
    assert_eq!(told.recv_timeout(PATIENCE).unwrap(), (std::thread::current().id(), 1));
}

#[test]
fn such_a_turn_also_does_what_is_due() {
    let time = Arc::new(AtomicI64::new(THEN.get()));
    let shown = time.clone();
    let (engine, told) = engine(core(HOUR, THEN), move || UnixMillis::new(shown.load(Ordering::Relaxed)));
    assert!(engine.turn(start()));
    assert_eq!(ended(&told.try_recv().unwrap()), 0);
    // The thread sleeps: it goes by the time of the world, in which no hour has passed.
    time.store((THEN + HOUR).get(), Ordering::Relaxed);
    assert!(engine.turn(start()));
    assert_eq!(ended(&told.try_recv().unwrap()), 1);
}

#[test]
fn the_thread_wakes_for_what_such_a_turn_makes_due() {
    let (look, looked) = channel();
    let (engine, told) = engine(core(50, clock()), move || {
        let _ = look.send(());
        clock()
    });
    // It looks at the clock for its first turn, and again before it falls asleep: then nothing is due for an hour.
    for _ in 0..2 {
        looked.recv_timeout(PATIENCE).unwrap();
    }
    assert!(engine.turn(start()));
    while ended(&told.recv_timeout(PATIENCE).expect("the lease ends")) == 0 {}
}

#[test]
fn nobody_goes_on_after_a_turn_that_broke_off() {
    let (engine, _) = Engine::start(core(HOUR, THEN), || THEN, |_| panic!("on purpose")).unwrap();
    let broken = engine.clone();
    assert!(std::thread::spawn(move || broken.turn(start())).join().is_err());
    assert!(!engine.turn(start()));
}

#[test]
fn both_ways_are_taken_one_after_the_other_and_nothing_is_lost() {
    let (engine, told) = engine(core(HOUR, clock()), clock);
    std::thread::scope(|scope| {
        for at in 0..4 {
            let engine = &engine;
            scope.spawn(move || {
                for _ in 0..50 {
                    assert!(if at % 2 == 0 { engine.turn(start()) } else { engine.ask(start()) });
                }
            });
        }
    });
    let mut answered = 0;
    while answered < 200 {
        let outputs = told.recv_timeout(PATIENCE).unwrap();
        let refused = |output: &&Output| matches!(output, Output::Reply(_, answer) if !matches!(answer, Reply::QuestionOpened { .. } | Reply::SessionStarted { .. }));
        assert_eq!(outputs.iter().find(refused), None);
        answered += answers(&outputs).len();
    }
}
