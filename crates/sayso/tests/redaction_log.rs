//! The agent's log reports how many secrets were redacted, and nothing else about them.

#![cfg(feature = "embedded")]
#![allow(clippy::unwrap_used, reason = "a test reports a failure by panicking")]

use std::fmt::{self, Write as _};
use std::sync::Mutex;

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt as _};

static LOG_LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Captures the log events of the crate `sayso` and checks that no log event contains a secret.
struct LogCapture;

struct LogLine(String);

impl Visit for LogLine {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl<S: Subscriber> Layer<S> for LogCapture {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = LogLine(event.metadata().level().to_string());
        event.record(&mut line);
        assert!(!line.0.contains("hunter2") && !line.0.contains("4111"), "{}", line.0);
        if event.metadata().module_path().is_some_and(|path| path.starts_with("sayso::")) {
            LOG_LINES.lock().unwrap().push(line.0);
        }
    }
}

#[tokio::test]
async fn the_log_reports_the_redaction_count_of_a_session() {
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(LogCapture)).unwrap();
    let hub = sayso::Hub::embedded().open().unwrap();
    let quiet = hub.session("Nothing to hide.").start().await.unwrap();
    quiet.finish("Done.").await.unwrap();
    let session = hub.session("My password: hunter2 was stolen.").start().await.unwrap();
    let id = session.id().to_owned();
    session.output("The card 4111 1111 1111 1111 too.").await.unwrap();
    session.finish("Done.").await.unwrap();
    // The password is in the summary and in the text of the request; the card number is in the output.
    assert_eq!(hub.redaction_count(), 3);
    hub.close().await;
    let lines = LOG_LINES.lock().unwrap();
    let line = format!("INFO message=secrets were removed from what people heard session={id} redacted=3");
    assert_eq!(*lines, [line]);
}
