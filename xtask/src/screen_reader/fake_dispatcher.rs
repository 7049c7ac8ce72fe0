//! A replacement for speech-dispatcher. It implements speech-dispatcher's protocol (SSIP) and passes the text from Orca to
//! the simulated synthesizer.
//!
//! Without a sound card, the real speech-dispatcher stops answering, and Orca hangs.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::simulated_synthesizer::{SimulatedSynthesizer, SpeechEvent, SpeechObserver};

/// Serves this socket until the process ends.
pub(super) fn listen(socket: &Path, synthesizer: &Arc<SimulatedSynthesizer>) -> Result<(), String> {
    let listener = UnixListener::bind(socket)
        .map_err(|error| format!("cannot listen on {}: {error}", socket.display()))?;
    let synthesizer = Arc::clone(synthesizer);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let synthesizer = Arc::clone(&synthesizer);
            std::thread::spawn(move || serve(stream, &synthesizer));
        }
    });
    Ok(())
}

/// A connection. Every connection has the same client id, because Orca opens only one.
struct SsipClient(Mutex<UnixStream>);

const CLIENT_ID: usize = 1;

impl SsipClient {
    fn send(&self, lines: &[&str]) -> Option<()> {
        let text: String = lines.iter().flat_map(|line| [line, "\r\n"]).collect();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write_all(text.as_bytes()).ok()
    }
}

impl SpeechObserver for SsipClient {
    fn notify(&self, id: usize, event: SpeechEvent) {
        let (code, event_name) = match event {
            SpeechEvent::Started => (701, "BEGIN"),
            SpeechEvent::Ended => (702, "END"),
            SpeechEvent::Cancelled => (703, "CANCELED"),
        };
        let _ = self.send(&[
            &format!("{code}-{id}"),
            &format!("{code}-{CLIENT_ID}"),
            &format!("{code} {event_name}"),
        ]);
    }
}

fn serve(stream: UnixStream, synthesizer: &SimulatedSynthesizer) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
    let client = Arc::new(SsipClient(Mutex::new(stream)));
    let mut last_id = 0;
    while let Some(Ok(line)) = lines.next() {
        let (command, rest) = line.split_once(' ').unwrap_or((&line, ""));
        match command.to_ascii_uppercase().as_str() {
            "SPEAK" => {
                client.send(&["230 OK RECEIVING DATA"])?;
                let text = strip_ssml(&read_data(&mut lines));
                enqueue(synthesizer, &client, &mut last_id, text)?;
            }
            "CHAR" | "KEY" => enqueue(synthesizer, &client, &mut last_id, rest.to_owned())?,
            "CANCEL" | "STOP" => {
                synthesizer.stop();
                client.send(&["210 OK CANCELED"])?;
            }
            "HISTORY" => client.send(&[&format!("245-{CLIENT_ID}"), "245 OK CLIENT ID SENT"])?,
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
            // Other commands change speech settings, which the simulated synthesizer does not have.
            _ => client.send(&["200 OK"])?,
        }
    }
    None
}

/// Queues a text. The response with the message id is sent first, because Orca cannot handle events with an unknown id.
fn enqueue(
    synthesizer: &SimulatedSynthesizer,
    client: &Arc<SsipClient>,
    last_id: &mut usize,
    text: String,
) -> Option<()> {
    *last_id += 1;
    client.send(&[&format!("225-{last_id}"), "225 OK MESSAGE QUEUED"])?;
    let observer: Arc<dyn SpeechObserver> = Arc::clone(client) as Arc<dyn SpeechObserver>;
    if text.is_empty() {
        observer.notify(*last_id, SpeechEvent::Started);
        observer.notify(*last_id, SpeechEvent::Ended);
    } else {
        synthesizer.enqueue(*last_id, text, observer);
    }
    Some(())
}

/// Reads lines until one that consists of a single dot.
fn read_data(lines: &mut impl Iterator<Item = std::io::Result<String>>) -> String {
    let mut text = Vec::new();
    for line in lines.map_while(Result::ok).take_while(|line| line != ".") {
        text.push(line.strip_prefix('.').map_or(line.clone(), str::to_owned));
    }
    text.join(" ")
}

/// Returns the plain text of an SSML document.
fn strip_ssml(ssml: &str) -> String {
    let mut text = String::new();
    for part in ssml.split('<') {
        text.push_str(part.split_once('>').map_or(part, |(_, after)| after));
    }
    for (entity, character) in
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")]
    {
        text = text.replace(entity, character);
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ssml_tags_and_entities_are_converted_to_text() {
        let ssml = "<speak>Tea &amp; <mark name=\"4:9\"/>milk\n  &lt;3</speak>";
        assert_eq!(strip_ssml(ssml), "Tea & milk <3");
    }

    #[test]
    fn a_line_with_a_single_dot_ends_the_data() {
        let sent = ["one", "..two", ".", "SET"].map(|line| Ok(line.to_owned()));
        let mut lines = sent.into_iter();
        assert_eq!(read_data(&mut lines), "one .two");
        assert_eq!(lines.len(), 1);
    }
}
