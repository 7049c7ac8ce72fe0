//! `espeak-ng` as a process, one for each text. The text goes to its standard input, never into its arguments.

use std::io;
use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

use super::pace::Pace;
use super::spoken::Spoken;
use super::trouble::Trouble;

/// Speaks by processes.
pub(super) struct Espeak {
    program: &'static str,
    pub(super) pace: Pace,
    /// What is being said, and with which voices it can be tried yet.
    saying: Option<Saying>,
}

struct Saying {
    child: Child,
    text: String,
    voices: Vec<String>,
}

impl Espeak {
    pub(super) async fn find(program: &'static str, pace: Option<Pace>) -> Result<Self, Trouble> {
        let mut command = Command::new(program);
        command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        match command.status().await {
            Ok(status) if status.success() => {
                Ok(Self { program, pace: pace.unwrap_or_default(), saying: None })
            }
            Ok(_) => Err(Trouble::DoesNotRun),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Trouble::NotInstalled),
            Err(error) => Err(Trouble::CannotStart(error.to_string())),
        }
    }

    pub(super) fn say(&mut self, spoken: &Spoken) -> Result<(), Trouble> {
        // The last that is tried first.
        let mut voices = vec![String::new()];
        let tag = spoken.language.to_ascii_lowercase();
        if let Some((primary, _)) = tag.split_once('-') {
            voices.push(primary.to_owned());
        }
        voices.push(tag);
        self.begin(text(spoken), voices)
    }

    /// When what is being said has ended; never, if nothing is.
    pub(super) async fn ended(&mut self) -> Result<(), Trouble> {
        loop {
            let Some(saying) = &mut self.saying else { return std::future::pending().await };
            let status = saying.child.wait().await;
            let Some(saying) = self.saying.take() else { return Ok(()) };
            match status {
                Ok(status) if status.success() => return Ok(()),
                // A voice that it does not have.
                Ok(_) if !saying.voices.is_empty() => self.begin(saying.text, saying.voices)?,
                Ok(_) => return Err(Trouble::CannotSpeak),
                Err(error) => return Err(Trouble::Fails(error.to_string())),
            }
        }
    }

    pub(super) async fn stop(&mut self) {
        if let Some(mut saying) = self.saying.take() {
            let _ = saying.child.kill().await;
        }
    }

    fn begin(&mut self, text: String, mut voices: Vec<String>) -> Result<(), Trouble> {
        let mut command = Command::new(self.program);
        command.args(["-b", "1", "--stdin", "-s", &self.pace.words_per_minute().to_string()]);
        if let Some(voice) = voices.pop().filter(|voice| !voice.is_empty()) {
            command.args(["-v", &voice]);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| Trouble::CannotStart(error.to_string()))?;
        if let Some(mut input) = child.stdin.take() {
            let bytes = text.clone().into_bytes();
            tokio::spawn(async move {
                let _ = input.write_all(&bytes).await;
                let _ = input.shutdown().await;
            });
        }
        self.saying = Some(Saying { child, text, voices });
        Ok(())
    }
}

/// `[[` would begin phonemes.
fn text(spoken: &Spoken) -> String {
    spoken.lines().flat_map(|line| [line, "\n"]).collect::<String>().replace('[', "[ ")
}
