//! In the place of speech-dispatcher: speaks its protocol (SSIP) with Orca, and hands the words to the voice.
//!
//! With no sound card the real one stops answering, and Orca with it.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::voice::{Speaker, Told, Voice};

/// Answers on this socket until the process ends.
pub(super) fn listen(socket: &Path, voice: &Arc<Voice>) -> Result<(), String> {
    let listener = UnixListener::bind(socket)
        .map_err(|error| format!("cannot listen on {}: {error}", socket.display()))?;
    let voice = Arc::clone(voice);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let voice = Arc::clone(&voice);
            std::thread::spawn(move || serve(stream, &voice));
        }
    });
    Ok(())
}

/// One connection. Its number is always the same: Orca has one, and asks only for its own.
struct Client(Mutex<UnixStream>);

const NUMBER: usize = 1;

impl Client {
    fn send(&self, lines: &[&str]) -> Option<()> {
        let text: String = lines.iter().flat_map(|line| [line, "\r\n"]).collect();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write_all(text.as_bytes()).ok()
    }
}

impl Speaker for Client {
    fn told(&self, id: usize, what: Told) {
        let (code, word) = match what {
            Told::Begun => (701, "BEGIN"),
            Told::Ended => (702, "END"),
            Told::Cut => (703, "CANCELED"),
        };
        let _ = self.send(&[&format!("{code}-{id}"), &format!("{code}-{NUMBER}"), &format!("{code} {word}")]);
    }
}

fn serve(stream: UnixStream, voice: &Voice) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
    let client = Arc::new(Client(Mutex::new(stream)));
    let mut last = 0;
    while let Some(Ok(line)) = lines.next() {
        let (command, rest) = line.split_once(' ').unwrap_or((&line, ""));
        match command.to_ascii_uppercase().as_str() {
            "SPEAK" => {
                client.send(&["230 OK RECEIVING DATA"])?;
                let text = plain(&data(&mut lines));
                say(voice, &client, &mut last, text)?;
            }
            "CHAR" | "KEY" => say(voice, &client, &mut last, rest.to_owned())?,
            "CANCEL" | "STOP" => {
                voice.stop();
                client.send(&["210 OK CANCELED"])?;
            }
            "HISTORY" => client.send(&[&format!("245-{NUMBER}"), "245 OK CLIENT ID SENT"])?,
            "LIST" if rest.eq_ignore_ascii_case("output_modules") => {
                client.send(&["250-espeak-ng", "250 OK MODULES LIST SENT"])?;
            }
            "LIST" => client.send(&["249-English\ten-US\tnone", "249 OK VOICE LIST SENT"])?,
            "GET" => {
                let value = match rest.to_ascii_lowercase().as_str() {
                    "language" => "en-US",
                    "output_module" => "espeak-ng",
                    _ => "0",
                };
                client.send(&[&format!("251-{value}"), "251 OK GET RETURNED"])?;
            }
            "QUIT" => return client.send(&["231 HAPPY HACKING"]),
            // Settings of the voice; ours has none.
            _ => client.send(&["200 OK"])?,
        }
    }
    None
}

/// The answer goes first: words that end before they are known to have begun would confuse Orca.
fn say(voice: &Voice, client: &Arc<Client>, last: &mut usize, text: String) -> Option<()> {
    *last += 1;
    client.send(&[&format!("225-{last}"), "225 OK MESSAGE QUEUED"])?;
    let speaker: Arc<dyn Speaker> = Arc::clone(client) as Arc<dyn Speaker>;
    if text.is_empty() {
        speaker.told(*last, Told::Begun);
        speaker.told(*last, Told::Ended);
    } else {
        voice.give(*last, text, speaker);
    }
    Some(())
}

/// Lines up to a dot that stands alone.
fn data(lines: &mut impl Iterator<Item = std::io::Result<String>>) -> String {
    let mut text = Vec::new();
    for line in lines.map_while(Result::ok).take_while(|line| line != ".") {
        text.push(line.strip_prefix('.').map_or(line.clone(), str::to_owned));
    }
    text.join(" ")
}

/// SSML as what is heard of it.
fn plain(ssml: &str) -> String {
    let mut text = String::new();
    for piece in ssml.split('<') {
        text.push_str(piece.split_once('>').map_or(piece, |(_, after)| after));
    }
    for (name, sign) in [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")] {
        text = text.replace(name, sign);
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_and_names_of_signs_are_not_heard() {
        let ssml = "<speak>Tea &amp; <mark name=\"4:9\"/>milk\n  &lt;3</speak>";
        assert_eq!(plain(ssml), "Tea & milk <3");
    }

    #[test]
    fn a_dot_alone_ends_what_is_to_be_said() {
        let sent = ["one", "..two", ".", "SET"].map(|line| Ok(line.to_owned()));
        let mut lines = sent.into_iter();
        assert_eq!(data(&mut lines), "one .two");
        assert_eq!(lines.len(), 1);
    }
}
