//! The agent's own log says how many secrets were removed, and nothing else about them.

#![cfg(feature = "embedded")]
#![allow(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]

use std::fmt::{self, Write as _};
use std::sync::Mutex;

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt as _};

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Keeps the events of the crate `sayso`, and checks that no event at all tells a secret.
struct Kept;

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl<S: Subscriber> Layer<S> for Kept {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        assert!(!line.0.contains("hunter2") && !line.0.contains("4111"), "{}", line.0);
        if event.metadata().module_path().is_some_and(|path| path.starts_with("sayso::")) {
            LINES.lock().unwrap().push(line.0);
        }
    }
}

#[tokio::test]
async fn the_count_of_a_session_is_in_the_log() {
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(Kept)).unwrap();
    let hub = sayso::Hub::embedded().open().unwrap();
    let quiet = hub.session("Nothing to hide.").start().await.unwrap();
    quiet.finish("Done.").await.unwrap();
    let session = hub.session("My password: hunter2 was stolen.").start().await.unwrap();
    let id = session.id().to_owned();
    session.output("The card 4111 1111 1111 1111 too.").await.unwrap();
    session.finish("Done.").await.unwrap();
    assert_eq!(hub.redacted(), 3);
    hub.close().await;
    let lines = LINES.lock().unwrap();
    let line = format!("INFO message=secrets were removed from what people heard session={id} redacted=3");
    assert_eq!(*lines, [line]);
}
