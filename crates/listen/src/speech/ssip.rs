//! The part of SSIP, the protocol of speech-dispatcher, that this client needs.
//!
//! A command is one line. A reply is one or more lines with a three-digit code; in the last line, a space follows the code. A text
//! is sent as lines between `SPEAK` and a single dot; a line that starts with a dot gets another dot in front. Events report the
//! progress of a text. They look like replies, with codes from 700.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::dispatcher_address::{DispatcherAddress, DispatcherStream};
use super::engine_error::SpeechEngineError;
use super::speech_rate::SpeechRate;
use super::speech_segment::{SpeechSegment, SsipPriority};

/// How long to wait for the reply to a command.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to wait for a cancelled text to end.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum length of a line from the dispatcher, in bytes.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// A connection to speech-dispatcher.
pub(super) struct SsipConnection {
    stream: Box<dyn DispatcherStream>,
    /// Received bytes that do not form a complete line yet.
    buffer: Vec<u8>,
    /// Lines of an event whose last line has not arrived.
    event_lines: Vec<String>,
    /// Events that arrived while waiting for a reply.
    pending_events: Vec<SsipEvent>,
    /// The language that the person configured. It is also used for texts in other regional variants of the same language.
    default_language: Option<String>,
    language: Option<String>,
    priority: Option<SsipPriority>,
    rate: SpeechRate,
}

/// An event that reports the progress of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SsipEvent {
    pub(super) message_id: String,
    pub(super) kind: SsipEventKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SsipEventKind {
    Started,
    Ended,
    Cancelled,
    Paused,
    Resumed,
}

struct SsipReply {
    code: u16,
    lines: Vec<String>,
}

impl SsipConnection {
    pub(super) async fn open(
        address: &DispatcherAddress,
        rate: Option<SpeechRate>,
    ) -> Result<Self, SpeechEngineError> {
        let stream = address.connect_or_start().await?;
        Self::handshake(stream, rate).await
    }

    pub(super) async fn handshake(
        stream: Box<dyn DispatcherStream>,
        rate: Option<SpeechRate>,
    ) -> Result<Self, SpeechEngineError> {
        let mut connection = Self {
            stream,
            buffer: Vec::new(),
            event_lines: Vec::new(),
            pending_events: Vec::new(),
            default_language: None,
            language: None,
            priority: None,
            rate: SpeechRate::default(),
        };
        connection.send_required("SET self CLIENT_NAME person:sayso:listen").await?;
        connection.send_required("SET self NOTIFICATION ALL on").await?;
        // Agents' output is plain text, even if it looks like markup.
        connection.send_required("SET self SSML_MODE off").await?;
        connection.default_language = connection.get_setting("LANGUAGE").await?;
        if let Some(rate) = rate {
            connection.set_rate(rate).await?;
        } else {
            let configured_rate = connection.get_setting("RATE").await?.and_then(|rate| rate.parse().ok());
            connection.rate = configured_rate.and_then(SpeechRate::new).unwrap_or_default();
        }
        Ok(connection)
    }

    pub(super) fn rate(&self) -> SpeechRate {
        self.rate
    }

    pub(super) async fn set_rate(&mut self, rate: SpeechRate) -> Result<(), SpeechEngineError> {
        self.rate = rate;
        self.send_command(&format!("SET self RATE {rate}")).await.map(drop)
    }

    /// Sends a text. Returns the id that events use for the text, or `None` if the dispatcher does not accept the text.
    pub(super) async fn speak(
        &mut self,
        segment: &SpeechSegment,
    ) -> Result<Option<String>, SpeechEngineError> {
        if self.priority != Some(segment.priority) {
            self.send_command(&format!("SET self PRIORITY {}", segment.priority.as_str())).await?;
            self.priority = Some(segment.priority);
        }
        let language = match &self.default_language {
            Some(default_language)
                if primary_subtag(default_language)
                    .eq_ignore_ascii_case(primary_subtag(&segment.language)) =>
            {
                default_language.clone()
            }
            _ => segment.language.clone(),
        };
        if self.language.as_ref().or(self.default_language.as_ref()) != Some(&language) {
            // The dispatcher chooses the closest voice for a language that it does not have.
            self.send_command(&format!("SET self LANGUAGE {language}")).await?;
            self.language = Some(language);
        }
        if self.send_command("SPEAK").await?.code != 230 {
            return Ok(None);
        }
        let reply = self.send_bytes(&encode_text(segment)).await?;
        Ok((reply.code == 225).then(|| reply.lines.into_iter().next()).flatten())
    }

    /// Stops all texts of this connection and waits until the text with this id has ended.
    pub(super) async fn cancel(&mut self, message_id: &str) -> Result<(), SpeechEngineError> {
        self.send_command("CANCEL self").await?;
        let wait_for_end = async {
            loop {
                let event = self.next_event().await?;
                if event.message_id == message_id
                    && matches!(event.kind, SsipEventKind::Ended | SsipEventKind::Cancelled)
                {
                    return Ok(());
                }
            }
        };
        timeout(CANCEL_TIMEOUT, wait_for_end).await.unwrap_or(Ok(()))
    }

    /// Waits for the next event about a text. It is cancel-safe.
    pub(super) async fn next_event(&mut self) -> Result<SsipEvent, SpeechEngineError> {
        loop {
            if !self.pending_events.is_empty() {
                return Ok(self.pending_events.remove(0));
            }
            let line = self.read_line().await?;
            self.handle_event_line(&line);
        }
    }

    async fn get_setting(&mut self, name: &str) -> Result<Option<String>, SpeechEngineError> {
        let reply = self.send_command(&format!("GET {name}")).await?;
        let value = reply.lines.into_iter().next().filter(|_| reply.code == 251);
        Ok(value.filter(|value| !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_graphic())))
    }

    async fn send_required(&mut self, command: &str) -> Result<(), SpeechEngineError> {
        let reply = self.send_command(command).await?;
        match reply.code {
            200..=299 => Ok(()),
            code => Err(SpeechEngineError::CommandRefused(format!("{command} ({code})"))),
        }
    }

    async fn send_command(&mut self, command: &str) -> Result<SsipReply, SpeechEngineError> {
        self.send_bytes(format!("{command}\r\n").as_bytes()).await
    }

    async fn send_bytes(&mut self, bytes: &[u8]) -> Result<SsipReply, SpeechEngineError> {
        let exchange = async {
            self.stream.write_all(bytes).await.map_err(|error| connection_lost(&error))?;
            self.stream.flush().await.map_err(|error| connection_lost(&error))?;
            let mut lines = Vec::new();
            loop {
                let line = self.read_line().await?;
                if self.handle_event_line(&line) {
                    continue;
                }
                let Some((code, is_last, text)) = parse_reply_line(&line) else { continue };
                if is_last {
                    return Ok(SsipReply { code, lines });
                }
                lines.push(text.to_owned());
            }
        };
        timeout(REPLY_TIMEOUT, exchange).await.unwrap_or(Err(SpeechEngineError::ReplyTimeout))
    }

    /// Handles a line if it belongs to an event. Returns whether it belongs to one.
    fn handle_event_line(&mut self, line: &str) -> bool {
        let Some((code @ 700..=799, is_last, text)) = parse_reply_line(line) else { return false };
        if !is_last {
            // The first two lines are the ids of the message and the client. An index mark has one more line.
            if self.event_lines.len() < 3 {
                self.event_lines.push(text.to_owned());
            }
            return true;
        }
        let lines = std::mem::take(&mut self.event_lines);
        let kind = match code {
            701 => SsipEventKind::Started,
            702 => SsipEventKind::Ended,
            703 => SsipEventKind::Cancelled,
            704 => SsipEventKind::Paused,
            705 => SsipEventKind::Resumed,
            _ => return true,
        };
        if let Some(message_id) = lines.into_iter().next() {
            self.pending_events.push(SsipEvent { message_id, kind });
        }
        true
    }

    async fn read_line(&mut self) -> Result<String, SpeechEngineError> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            if self.buffer.len() > MAX_LINE_BYTES {
                return Err(SpeechEngineError::InvalidReply);
            }
            let mut bytes = [0; 4096];
            let read = self.stream.read(&mut bytes).await.map_err(|error| connection_lost(&error))?;
            match bytes.get(..read) {
                None | Some([]) => return Err(SpeechEngineError::ConnectionClosed),
                Some(bytes) => self.buffer.extend_from_slice(bytes),
            }
        }
    }
}

/// Encodes a text for sending, with the final dot.
fn encode_text(segment: &SpeechSegment) -> Vec<u8> {
    let mut body = Vec::new();
    for line in segment.lines() {
        if line.starts_with('.') {
            body.push(b'.');
        }
        body.extend_from_slice(line.as_bytes());
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b".\r\n");
    body
}

/// Parses a reply line: the code, whether it is the last line, and the text.
fn parse_reply_line(line: &str) -> Option<(u16, bool, &str)> {
    let code = line.get(..3)?.parse().ok()?;
    match line.get(3..)?.as_bytes().first() {
        None | Some(b' ') => Some((code, true, line.get(4..).unwrap_or_default())),
        Some(b'-') => Some((code, false, line.get(4..)?)),
        _ => None,
    }
}

fn primary_subtag(tag: &str) -> &str {
    tag.split(['-', '_']).next().unwrap_or(tag)
}

fn connection_lost(error: &std::io::Error) -> SpeechEngineError {
    SpeechEngineError::ConnectionLost(error.to_string())
}
