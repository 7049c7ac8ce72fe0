//! `sayso capture`: writes down what a hub says, each thing as it comes, so that it can be judged and heard again.
//!
//! - `file`: the recording on disk, which ends with a whole line whatever happens.

mod file;

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aaep::SubscriptionId;
use aaep::event::Verbosity;
use aaep::json::{Doc, Kind, Tape};
use listen::client::{self, Address, Asking, Heard, Lost};
use listen::{RecentIds, Tastes};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::Outcome;
use crate::file::Stop;
use crate::listen::{language, verbosity};
use crate::print::{in_words, many, printable, tell};
use crate::validate::items::Items;
use crate::way::{Way, runtime, stopped};
use file::{File, Full};

#[derive(clap::Args)]
#[command(after_help = "The address may also be ws://HOST:PORT, wss://HOST:PORT or unix:PATH. \
    After a lost connection, the recording goes on where it was.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    way: Way,
    /// Where the recording goes: JSON Lines, as `sayso validate` and `sayso replay` read them. `-` is standard output.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Adds to a recording that is there.
    #[arg(long, conflicts_with = "force")]
    append: bool,
    /// Writes over a file that is there.
    #[arg(long)]
    force: bool,
    /// In how many words agents speak, where they leave the choice.
    #[arg(long, default_value = "detailed", value_parser = verbosity())]
    verbosity: Verbosity,
    /// The languages to record, the dearest first: --lang es,en
    #[arg(long = "lang", value_name = "TAG", value_delimiter = ',', default_value = "en", value_parser = language)]
    languages: Vec<String>,
    /// Does not say that it can answer. Then it hears no questions, and they are not in the recording.
    #[arg(long)]
    no_questions: bool,
}

/// Things that were heard and wait to be written.
const WAITING: usize = 64;
/// Ids that are remembered: after a lost connection the hub repeats what overtook something. It repeats less than that.
const IDS: usize = 65_536;
/// To say good-bye.
const FAREWELL: Duration = Duration::from_secs(2);

pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Stop> {
    let address = arguments.way.any_address()?;
    let mut known = RecentIds::new(IDS);
    let file = if arguments.append {
        let file = File::append(&arguments.output)?;
        remember(&arguments.output, &mut known)?;
        file
    } else {
        File::create(&arguments.output, arguments.force)?
    };
    let tastes =
        Tastes { verbosity: arguments.verbosity.clone(), languages: arguments.languages.clone(), rate: None };
    let answers = !arguments.no_questions;
    let request = move |asking| client::recorder(&tastes, answers, &asking);
    runtime(0)?.block_on(Capture::new(address, file, known, arguments.append).run(request))?;
    Ok(Outcome::Good)
}

/// What a recording has already: who joins late is told again what holds, by the same ids.
fn remember(path: &Path, known: &mut RecentIds) -> Result<(), String> {
    let cannot = |error: &io::Error| {
        format!("cannot read {}: {}", printable(&path.to_string_lossy()), in_words(error))
    };
    let mut items = Items::new(std::fs::File::open(path).map_err(|error| cannot(&error))?);
    let mut tape = Tape::default();
    while let Some(item) = items.next().map_err(|error| cannot(&error))? {
        let text = item.bytes.ok().and_then(|bytes| String::from_utf8(bytes).ok());
        if let Some(doc) = text.as_deref().and_then(|text| tape.read(text).ok())
            && let Some(id) = doc.root().member("event_id").and_then(|id| id.text())
        {
            known.insert((agent(&doc), id));
        }
    }
    Ok(())
}

/// The agent of an event; nothing if it names none.
fn agent<'d>(doc: &Doc<'d>) -> Cow<'d, str> {
    let agent = doc.root().member("producer").and_then(|producer| producer.member("agent_id")?.text());
    agent.unwrap_or_default()
}

struct Capture {
    address: Address,
    file: File,
    known: RecentIds,
    tape: Tape,
    subscription: Option<SubscriptionId>,
    /// A notice that the subscription is over. It is written when that holds: who is let in again was not let go.
    closing: Option<String>,
    lost: bool,
    /// The file has a recording already.
    added: bool,
    /// There was a connection.
    opened: bool,
    events: u64,
    repeated: u64,
    gaps: u64,
}

impl Capture {
    fn new(address: Address, file: File, known: RecentIds, added: bool) -> Self {
        Self {
            address,
            added,
            known,
            tape: Tape::default(),
            subscription: None,
            closing: None,
            lost: false,
            opened: false,
            events: 0,
            repeated: 0,
            gaps: 0,
            file,
        }
    }

    async fn run(mut self, request: impl Fn(Asking) -> String + Send + Sync + 'static) -> Result<(), String> {
        let stopped = stopped();
        let (tell, mut heard) = mpsc::channel(WAITING);
        let following = tokio::spawn(client::follow(self.address.clone(), None, request, tell));
        tokio::pin!(stopped);
        let ended = loop {
            tokio::select! {
                () = &mut stopped => break Ok(()),
                one = heard.recv() => match one.map(|one| self.hear(one)) {
                    None => break Ok(()),
                    Some(Ok(())) => {}
                    Some(Err(why)) => break Err(why),
                },
            }
        };
        // What has arrived is in the recording, also if it was not written when the signal came.
        let mut ended = ended;
        while ended.is_ok()
            && let Ok(one) = heard.try_recv()
        {
            ended = self.hear(one);
        }
        following.abort();
        let left = self.leave().await;
        let ended = match (ended, left) {
            (Err(End::Full(full)), _) | (Ok(()), Err(full)) => self.full(&full),
            (Err(End::Refused(why)), _) => Err(why),
            (Ok(()), Ok(())) => Ok(()),
        };
        if self.opened {
            self.sum_up();
        } else {
            self.file.leave_no_trace();
        }
        ended
    }

    fn hear(&mut self, heard: Heard) -> Result<(), End> {
        match heard {
            Heard::Terms { request, accepted } => {
                self.close()?;
                self.file.line(&request)?;
                self.file.line(&accepted)?;
            }
            Heard::Open { subscription, notes, resumed } => {
                self.opened(subscription, resumed);
                if let Some(notes) = notes {
                    tell(&format!("The hub says: {}", listen::plain(&notes, true)));
                }
            }
            Heard::Text(text) => self.take(&text)?,
            Heard::Lost(lost) if !std::mem::replace(&mut self.lost, true) => {
                tell(&format!("The connection is lost: {}. It is tried again until it works.", lost.why()));
            }
            Heard::Over(Lost::Unreachable(why)) => {
                return Err(End::Refused(format!("cannot reach {}: {why}", self.address.url())));
            }
            Heard::Over(Lost::Refused(why)) => return Err(End::Refused(why.to_string())),
            _ => {}
        }
        Ok(())
    }

    fn opened(&mut self, subscription: Option<SubscriptionId>, resumed: bool) {
        let known = subscription.is_some();
        let same = known && subscription == self.subscription;
        self.opened = true;
        // On other wires the connection is the subscription, and ends it.
        self.subscription = subscription.filter(|_| self.address.can_resume());
        match (std::mem::take(&mut self.lost), resumed) {
            (false, _) => {
                tell(&format!("Recording {} into {}.", self.address.url(), self.file.name()));
                if self.added {
                    tell("It is added to what is there. What was said while nobody recorded is not in it.");
                }
                if !known {
                    tell(
                        "This is an agent by itself, without a hub: what it says while there is no connection is lost.",
                    );
                }
            }
            (true, true) => {
                self.closing = None;
                tell("Connected again; the recording goes on where it was.");
            }
            (true, false) => {
                if same {
                    self.closing = None;
                }
                self.gaps += 1;
                tell(
                    "Connected again, but what was said meanwhile was not kept. It is not in the recording.",
                );
            }
        }
    }

    fn take(&mut self, text: &str) -> Result<(), End> {
        if text.trim_ascii().is_empty() {
            return Ok(());
        }
        let Some(doc) = self.tape.read(text).ok().filter(|doc| doc.root().kind() == Kind::Object) else {
            // It was said, so it stands there: whoever judges the recording finds it.
            return Ok(self.file.line(text)?);
        };
        let root = doc.root();
        let member = |name: &str| root.member(name).and_then(|value| value.text());
        let kind = member("type").unwrap_or_default();
        if kind == "sayso:gap" {
            self.gaps += 1;
            tell("Some of what was said is not kept any more by the hub. It is not in the recording.");
            return Ok(());
        }
        if let Some(id) = member("event_id") {
            if !self.known.insert((agent(&doc), id)) {
                self.repeated += 1;
                return Ok(());
            }
            self.file.line(text)?;
            self.events += 1;
            return Ok(());
        }
        if kind == "subscription.close" {
            self.closing = Some(text.to_owned());
            return Ok(());
        }
        self.file.line(text)?;
        Ok(())
    }

    /// Writes the notice that a subscription is over, if there is one.
    fn close(&mut self) -> Result<(), Full> {
        match self.closing.take() {
            Some(notice) => self.file.line(&notice),
            None => Ok(()),
        }
    }

    /// Says good-bye, and writes that down.
    async fn leave(&mut self) -> Result<(), Full> {
        if let Some(subscription) = self.subscription.take() {
            let farewell = client::farewell(&subscription);
            let _ = timeout(FAREWELL, client::send(&self.address, &farewell)).await;
            self.closing.get_or_insert(farewell);
        }
        if self.file.is_full() {
            return Ok(());
        }
        self.close()
    }

    fn full(&mut self, full: &Full) -> Result<(), String> {
        let left = if full.cut { "It ends with a whole line." } else { "Its last line may not be whole." };
        Err(format!("cannot write {}: {}. The recording ends here. {left}", self.file.name(), full.why))
    }

    fn sum_up(&self) {
        let mut parts = vec![format!("{} recorded in {}.", many(self.events, "event"), self.file.name())];
        if self.repeated > 0 {
            parts.push(format!("{} came again and stands there once.", many(self.repeated, "event")));
        }
        if self.gaps > 0 {
            parts.push(format!("There is more that was not heard: {}.", many(self.gaps, "gap")));
        }
        tell(&parts.join(" "));
    }
}

enum End {
    Full(Full),
    Refused(String),
}

impl From<Full> for End {
    fn from(full: Full) -> Self {
        Self::Full(full)
    }
}
