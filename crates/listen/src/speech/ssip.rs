//! SSIP, the protocol of speech-dispatcher, as far as one who speaks needs it.
//!
//! A command is a line, an answer is lines with a number in front, of which the last has a space behind it. A text is lines
//! between `SPEAK` and a dot alone; a line of the text that begins with a dot gets another in front. What becomes of a text is
//! told by events, which are answers with numbers of 700 and more.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::pace::Pace;
use super::place::{Place, Stream};
use super::spoken::{Priority, Spoken};
use super::trouble::Trouble;

/// For an answer to a command.
const ANSWER: Duration = Duration::from_secs(10);
/// For a text that was cut off to end.
const SILENCE: Duration = Duration::from_secs(1);
/// Bytes of one line that the dispatcher says.
const LONGEST: usize = 64 * 1024;

/// A connection to speech-dispatcher.
pub(super) struct Connection {
    stream: Box<dyn Stream>,
    /// Bytes that were read and are no whole line yet.
    read: Vec<u8>,
    /// Numbers of an event whose last line has not come.
    event: Vec<String>,
    /// Events that came while an answer was waited for.
    events: Vec<Event>,
    /// The language that the person has set; ours is left alone where it is of the same.
    home: Option<String>,
    language: Option<String>,
    priority: Option<Priority>,
    pace: Pace,
}

/// What became of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) message: String,
    pub(super) fate: Fate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Begun,
    Ended,
    Cancelled,
    Paused,
    Resumed,
}

struct Answer {
    code: u16,
    lines: Vec<String>,
}

impl Connection {
    pub(super) async fn open(place: &Place, pace: Option<Pace>) -> Result<Self, Trouble> {
        let stream = place.reach().await?;
        Self::greet(stream, pace).await
    }

    pub(super) async fn greet(stream: Box<dyn Stream>, pace: Option<Pace>) -> Result<Self, Trouble> {
        let mut connection = Self {
            stream,
            read: Vec::new(),
            event: Vec::new(),
            events: Vec::new(),
            home: None,
            language: None,
            priority: None,
            pace: Pace::default(),
        };
        connection.must("SET self CLIENT_NAME person:sayso:listen").await?;
        connection.must("SET self NOTIFICATION ALL on").await?;
        // What agents write is text, whatever it looks like.
        connection.must("SET self SSML_MODE off").await?;
        connection.home = connection.get("LANGUAGE").await?;
        if let Some(pace) = pace {
            connection.set_pace(pace).await?;
        } else {
            let set = connection.get("RATE").await?.and_then(|rate| rate.parse().ok());
            connection.pace = set.and_then(Pace::new).unwrap_or_default();
        }
        Ok(connection)
    }

    pub(super) fn pace(&self) -> Pace {
        self.pace
    }

    pub(super) async fn set_pace(&mut self, pace: Pace) -> Result<(), Trouble> {
        self.pace = pace;
        self.ask(&format!("SET self RATE {pace}")).await.map(drop)
    }

    /// Gives it a text; the number by which events name it, or none if the dispatcher does not take it.
    pub(super) async fn speak(&mut self, spoken: &Spoken) -> Result<Option<String>, Trouble> {
        if self.priority != Some(spoken.priority) {
            self.ask(&format!("SET self PRIORITY {}", spoken.priority.word())).await?;
            self.priority = Some(spoken.priority);
        }
        let language = match &self.home {
            Some(home) if primary(home).eq_ignore_ascii_case(primary(&spoken.language)) => home.clone(),
            _ => spoken.language.clone(),
        };
        if self.language.as_ref().or(self.home.as_ref()) != Some(&language) {
            // One that it does not have is said as well as it can be.
            self.ask(&format!("SET self LANGUAGE {language}")).await?;
            self.language = Some(language);
        }
        if self.ask("SPEAK").await?.code != 230 {
            return Ok(None);
        }
        let answer = self.ask_bytes(&body(spoken)).await?;
        Ok((answer.code == 225).then(|| answer.lines.into_iter().next()).flatten())
    }

    /// Silence now, of what this connection says. It is waited until the text is known to be cut off.
    pub(super) async fn cancel(&mut self, message: &str) -> Result<(), Trouble> {
        self.ask("CANCEL self").await?;
        let is_over = async {
            loop {
                let event = self.next_event().await?;
                if event.message == message && matches!(event.fate, Fate::Ended | Fate::Cancelled) {
                    return Ok(());
                }
            }
        };
        timeout(SILENCE, is_over).await.unwrap_or(Ok(()))
    }

    /// The next thing that became of a text. Nothing is lost when the wait is given up.
    pub(super) async fn next_event(&mut self) -> Result<Event, Trouble> {
        loop {
            if !self.events.is_empty() {
                return Ok(self.events.remove(0));
            }
            let line = self.line().await?;
            self.take_event(&line);
        }
    }

    async fn get(&mut self, what: &str) -> Result<Option<String>, Trouble> {
        let answer = self.ask(&format!("GET {what}")).await?;
        let value = answer.lines.into_iter().next().filter(|_| answer.code == 251);
        Ok(value.filter(|value| !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_graphic())))
    }

    async fn must(&mut self, command: &str) -> Result<(), Trouble> {
        let answer = self.ask(command).await?;
        match answer.code {
            200..=299 => Ok(()),
            code => Err(Trouble::Refuses(format!("{command} ({code})"))),
        }
    }

    async fn ask(&mut self, command: &str) -> Result<Answer, Trouble> {
        self.ask_bytes(format!("{command}\r\n").as_bytes()).await
    }

    async fn ask_bytes(&mut self, bytes: &[u8]) -> Result<Answer, Trouble> {
        let exchange = async {
            self.stream.write_all(bytes).await.map_err(|error| gone(&error))?;
            self.stream.flush().await.map_err(|error| gone(&error))?;
            let mut lines = Vec::new();
            loop {
                let line = self.line().await?;
                if self.take_event(&line) {
                    continue;
                }
                let Some((code, end, text)) = parts(&line) else { continue };
                if end {
                    return Ok(Answer { code, lines });
                }
                lines.push(text.to_owned());
            }
        };
        timeout(ANSWER, exchange).await.unwrap_or(Err(Trouble::NoAnswer))
    }

    /// Whether it was a line of an event.
    fn take_event(&mut self, line: &str) -> bool {
        let Some((code @ 700..=799, end, text)) = parts(line) else { return false };
        if !end {
            // A message and a client; a mark has one more.
            if self.event.len() < 3 {
                self.event.push(text.to_owned());
            }
            return true;
        }
        let numbers = std::mem::take(&mut self.event);
        let fate = match code {
            701 => Fate::Begun,
            702 => Fate::Ended,
            703 => Fate::Cancelled,
            704 => Fate::Paused,
            705 => Fate::Resumed,
            _ => return true,
        };
        if let Some(message) = numbers.into_iter().next() {
            self.events.push(Event { message, fate });
        }
        true
    }

    async fn line(&mut self) -> Result<String, Trouble> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            if self.read.len() > LONGEST {
                return Err(Trouble::NotUnderstood);
            }
            let mut bytes = [0; 4096];
            let read = self.stream.read(&mut bytes).await.map_err(|error| gone(&error))?;
            match bytes.get(..read) {
                None | Some([]) => return Err(Trouble::Ended),
                Some(bytes) => self.read.extend_from_slice(bytes),
            }
        }
    }
}

/// A text as it is sent, to its end.
fn body(spoken: &Spoken) -> Vec<u8> {
    let mut body = Vec::new();
    for line in spoken.lines() {
        if line.starts_with('.') {
            body.push(b'.');
        }
        body.extend_from_slice(line.as_bytes());
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b".\r\n");
    body
}

/// The number, whether it is the last line, and what is said.
fn parts(line: &str) -> Option<(u16, bool, &str)> {
    let code = line.get(..3)?.parse().ok()?;
    match line.get(3..)?.as_bytes().first() {
        None | Some(b' ') => Some((code, true, line.get(4..).unwrap_or_default())),
        Some(b'-') => Some((code, false, line.get(4..)?)),
        _ => None,
    }
}

fn primary(tag: &str) -> &str {
    tag.split(['-', '_']).next().unwrap_or(tag)
}

fn gone(error: &std::io::Error) -> Trouble {
    Trouble::Gone(error.to_string())
}
