//! How many secrets were taken out stands in the agent's own log, and nothing else of them.

#![cfg(feature = "embedded")]
#![allow(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]

use std::sync::Mutex;

struct Kept(Mutex<Vec<String>>);

static KEPT: Kept = Kept(Mutex::new(Vec::new()));

impl log::Log for Kept {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        if record.target().starts_with("sayso") {
            self.0.lock().unwrap().push(format!("{} {}", record.level(), record.args()));
        }
    }

    fn flush(&self) {}
}

#[tokio::test]
async fn the_count_of_a_session_is_in_the_log() {
    log::set_logger(&KEPT).unwrap();
    log::set_max_level(log::LevelFilter::Trace);
    let hub = sayso::Hub::embedded().open().unwrap();
    let quiet = hub.session("Nothing to hide.").start().await.unwrap();
    quiet.finish("Done.").await.unwrap();
    let session = hub.session("My password: hunter2 was stolen.").start().await.unwrap();
    let id = session.id().to_owned();
    session.output("The card 4111 1111 1111 1111 too.").await.unwrap();
    session.finish("Done.").await.unwrap();
    assert_eq!(hub.redacted(), 3);
    hub.close().await;
    let kept = KEPT.0.lock().unwrap();
    assert_eq!(*kept, [format!("INFO {id}: 3 secrets were taken out of what people heard")]);
}
