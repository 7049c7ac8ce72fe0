//! Runs one `espeak-ng` process per text. The text goes to the standard input of the process, never into its arguments.

use std::io;
use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

use super::engine_error::SpeechEngineError;
use super::speech_rate::SpeechRate;
use super::speech_segment::SpeechSegment;

/// A speech engine that runs one process per text.
pub(super) struct Espeak {
    program: &'static str,
    pub(super) rate: SpeechRate,
    /// The text that is being spoken.
    current: Option<EspeakUtterance>,
}

struct EspeakUtterance {
    child: Child,
    text: String,
    /// The voices to try if the current one does not exist. The last one is tried first.
    voices: Vec<String>,
}

impl Espeak {
    pub(super) async fn detect(
        program: &'static str,
        rate: Option<SpeechRate>,
    ) -> Result<Self, SpeechEngineError> {
        let mut command = Command::new(program);
        command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        match command.status().await {
            Ok(status) if status.success() => {
                Ok(Self { program, rate: rate.unwrap_or_default(), current: None })
            }
            Ok(_) => Err(SpeechEngineError::NotRunnable),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(SpeechEngineError::NotInstalled),
            Err(error) => Err(SpeechEngineError::SpawnFailed(error.to_string())),
        }
    }

    pub(super) fn speak(&mut self, segment: &SpeechSegment) -> Result<(), SpeechEngineError> {
        // The last voice in the list is tried first.
        let mut voices = vec![String::new()];
        let tag = segment.language.to_ascii_lowercase();
        if let Some((primary, _)) = tag.split_once('-') {
            voices.push(primary.to_owned());
        }
        voices.push(tag);
        self.spawn(escape_phonemes(segment), voices)
    }

    /// Waits until the current text has ended. If there is no current text, waits forever.
    pub(super) async fn wait_finished(&mut self) -> Result<(), SpeechEngineError> {
        loop {
            let Some(utterance) = &mut self.current else { return std::future::pending().await };
            let status = utterance.child.wait().await;
            let Some(utterance) = self.current.take() else { return Ok(()) };
            match status {
                Ok(status) if status.success() => return Ok(()),
                // The voice does not exist, so try the next one.
                Ok(_) if !utterance.voices.is_empty() => self.spawn(utterance.text, utterance.voices)?,
                Ok(_) => return Err(SpeechEngineError::SpeechFailed),
                Err(error) => return Err(SpeechEngineError::ProcessFailed(error.to_string())),
            }
        }
    }

    pub(super) async fn stop(&mut self) {
        if let Some(mut utterance) = self.current.take() {
            let _ = utterance.child.kill().await;
        }
    }

    fn spawn(&mut self, text: String, mut voices: Vec<String>) -> Result<(), SpeechEngineError> {
        let mut command = Command::new(self.program);
        command.args(["-b", "1", "--stdin", "-s", &self.rate.words_per_minute().to_string()]);
        if let Some(voice) = voices.pop().filter(|voice| !voice.is_empty()) {
            command.args(["-v", &voice]);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| SpeechEngineError::SpawnFailed(error.to_string()))?;
        if let Some(mut input) = child.stdin.take() {
            let bytes = text.clone().into_bytes();
            tokio::spawn(async move {
                let _ = input.write_all(&bytes).await;
                let _ = input.shutdown().await;
            });
        }
        self.current = Some(EspeakUtterance { child, text, voices });
        Ok(())
    }
}

/// Joins the lines and puts a space after each `[`, because `[[` would start phoneme input.
fn escape_phonemes(segment: &SpeechSegment) -> String {
    segment.lines().flat_map(|line| [line, "\n"]).collect::<String>().replace('[', "[ ")
}
