//! What takes time, under a clock that is not real.

use std::time::Duration;

use hub::delivery::LaneLimits;
use hub::{Core, Principal};
use seal::UnixMillis;

use super::*;
use crate::server::Bridge;

/// Says these things and is silent from then on.
struct Script(Vec<&'static str>);

impl Ear for Script {
    async fn hear(&mut self) -> Heard {
        match self.0.pop() {
            Some(text) => Heard::Message { text: text.to_owned(), to: None },
            None => std::future::pending().await,
        }
    }
}

/// Notes what is said, by one word each; after so many it says nothing more and does not come back.
struct Notes(Vec<String>, usize);

impl Mouth for Notes {
    async fn say(&mut self, word: Word) -> bool {
        if self.0.len() >= self.1 {
            std::future::pending::<()>().await;
        }
        self.0.push(match word {
            Word::Ping => "ping".to_owned(),
            Word::Answer { .. } => "answer".to_owned(),
            other => format!("{other:?}"),
        });
        true
    }
}

const MANNERS: Manners = Manners {
    first: Some(Duration::from_secs(10)),
    ping: Some(Duration::from_secs(15)),
    malformed: Some(8),
    patience: Duration::from_mins(1),
};
const REQUEST: &str =
    r#"{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"test","capabilities":{}}"#;

fn run(script: Vec<&'static str>, most: usize) -> (Ending, Vec<String>, Duration) {
    let core = Core::new(
        Box::new(journal::Memory::default()),
        aaep::event::Producer::new("hub"),
        hub::Limits::default(),
        |bytes: &mut [u8]| bytes.fill(7),
        UnixMillis::new(0),
    );
    let bridge = Bridge::start(core.unwrap(), LaneLimits::default(), || UnixMillis::new(0)).unwrap();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let begin = tokio::time::Instant::now();
        let mut notes = Notes(Vec::new(), most);
        let manners = Manners { first: MANNERS.first.filter(|_| script.is_empty()), ..MANNERS };
        let ending = listen(&bridge, &Principal::anybody(), &manners, &mut Script(script), &mut notes).await;
        (ending, notes.0, begin.elapsed())
    })
}

#[test]
fn who_says_nothing_at_all_is_let_go() {
    let (ending, said, after) = run(Vec::new(), 9);
    assert_eq!((ending, said.len()), (Ending::Silent, 1));
    assert!(after >= Duration::from_secs(10), "{after:?}");
}

#[test]
fn three_pings_in_vain_are_the_end() {
    let (ending, said, after) = run(vec![REQUEST], usize::MAX);
    assert_eq!(ending, Ending::Silent);
    assert_eq!(said.get(..4).unwrap(), ["answer", "ping", "ping", "ping"]);
    assert!(after >= Duration::from_mins(1), "{after:?}");
}

#[test]
fn who_takes_nothing_any_more_is_let_go() {
    let (ending, said, _) = run(vec![REQUEST], 2);
    // While the hub's thread is waited for, the clock that is not real runs on.
    assert!(matches!(ending, Ending::Silent | Ending::Gone), "{ending:?}");
    assert_eq!(said.len(), 2);
}
