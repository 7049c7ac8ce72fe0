//! Nothing waits that need not.

use std::io::Write;
use std::sync::{Arc, Mutex};

use aaep::SubscriptionId;
use futures_util::FutureExt;

use crate::client::{Address, Heard, Lost, Why};
use crate::terminal::talk::Talk;
use crate::terminal::{Hooks, Settings};
use crate::{Announcement, Tastes, Voice};

#[derive(Clone, Default)]
pub(super) struct Screen(Arc<Mutex<Vec<u8>>>);

impl Screen {
    /// What came since this was asked last.
    pub(super) fn lines(&self) -> Vec<String> {
        let bytes = std::mem::take(&mut *self.0.lock().unwrap());
        String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
    }
}

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// It never comes to an end.
struct Endless;

impl Voice for Endless {
    fn say(&mut self, _: &Announcement) {}

    fn stop(&mut self) {}

    fn is_free(&mut self) -> bool {
        false
    }
}

pub(super) fn talk(voice: Option<Box<dyn Voice>>) -> (Talk<Screen>, Screen) {
    talk_to(Address::parse("http://127.0.0.1:1", None).unwrap(), voice)
}

fn talk_to(address: Address, voice: Option<Box<dyn Voice>>) -> (Talk<Screen>, Screen) {
    let screen = Screen::default();
    let (wishes, _) = tokio::sync::watch::channel(Tastes::default());
    let settings = Settings::new(address);
    let hooks = Hooks { voice, ..Hooks::default() };
    let mut talk = Talk::new(settings, hooks, wishes, screen.clone());
    let subscription = SubscriptionId::parse("sub_1").ok();
    talk.hear(Heard::Open { subscription, notes: None, resumed: false });
    (talk, screen)
}

pub(super) fn event(number: usize, kind: &str, rest: &str) -> Heard {
    Heard::Text(format!(
        r#"{{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:agent.{kind}","event_id":"evt_{number}","session_id":"sess_1","timestamp":"2026-05-24T14:00:00Z","producer":{{"agent_id":"bank"}},{rest}}}"#
    ))
}

#[tokio::test]
async fn an_answer_is_on_its_way_in_the_step_in_which_it_was_typed() {
    let (mut talk, screen) = talk(Some(Box::new(Endless)));
    let asked = r#""action":"A","consequence":"C","default_decision":"reject","reply_token":"rpl_1","timeout_seconds":300"#;
    talk.hear(event(1, "awaiting.confirmation", asked));
    talk.look();
    assert!(talk.sends.is_empty());
    talk.typed("yes");
    assert_eq!(talk.sends.len(), 1);
    let screen = String::from_utf8(screen.0.lock().unwrap().clone()).unwrap();
    assert!(screen.ends_with("answer: You say yes to question 1.\n"), "{screen}");
}

#[test]
fn a_voice_that_is_behind_keeps_nothing_from_being_read() {
    let (mut talk, screen) = talk(Some(Box::new(Endless)));
    for number in 0..1000 {
        let rest = format!(r#""tool":"t","summary_normal":"Number {number}.""#);
        talk.hear(event(number, "tool.invoked", &rest));
        talk.look();
    }
    let screen = String::from_utf8(screen.0.lock().unwrap().clone()).unwrap();
    let told = screen.lines().filter(|line| line.starts_with("tool: "));
    assert!(told.eq((0..1000).map(|number| format!("tool: Number {number}."))));
}

#[tokio::test]
async fn who_types_while_the_connection_is_lost_makes_it_try_now() {
    let address = Address::parse("http://127.0.0.1:1", None).unwrap();
    let (mut talk, _) = talk_to(address.clone(), None);
    talk.typed("status");
    assert_eq!(address.sooner().now_or_never(), None, "there is a connection");
    talk.hear(Heard::Lost(Lost::Unreachable(Why::Cut)));
    talk.typed("status");
    assert_eq!(address.sooner().now_or_never(), Some(()));
}
