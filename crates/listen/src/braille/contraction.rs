//! Contracted braille, by liblouis.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::timeout;

/// The translation program of liblouis.
const TRANSLATOR: &str = "lou_translate";
/// Makes liblouis write braille as Unicode characters.
const UNICODE_BRAILLE: &str = "unicode.dis";
/// Maximum number of characters in one line of input. The translator splits lines at 2048 characters, even inside a word.
const MAX_LINE_CHARS: usize = 1000;
/// How long one translation may take.
const TRANSLATION_TIMEOUT: Duration = Duration::from_secs(5);

/// Translates texts with a table of liblouis, such as `en-ueb-g2.ctb`. Fails if the translator is missing or has no such table.
pub(super) async fn contract(table: &str, texts: &[String]) -> io::Result<Vec<String>> {
    let parts: Vec<Vec<String>> = texts.iter().map(|text| split_into_lines(text)).collect();
    let input: String = parts.iter().flatten().flat_map(|line| [line, "\n"]).collect();
    if input.is_empty() {
        return Ok(texts.to_vec());
    }
    let mut child = Command::new(TRANSLATOR)
        .arg("--forward")
        .arg(format!("{UNICODE_BRAILLE},{table}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let stdin = child.stdin.take();
    let write = async {
        if let Some(mut stdin) = stdin {
            stdin.write_all(input.as_bytes()).await?;
        }
        io::Result::Ok(())
    };
    let (written, output) =
        timeout(TRANSLATION_TIMEOUT, async { tokio::join!(write, child.wait_with_output()) }).await?;
    written?;
    let output = String::from_utf8_lossy(&output?.stdout).into_owned();
    let mut lines = output.lines();
    let mut contracted = Vec::with_capacity(texts.len());
    for part in parts {
        let translated: Vec<&str> = lines.by_ref().take(part.len()).collect();
        // The translator reports an unknown table only on standard error.
        if translated.len() != part.len() || translated.iter().any(|line| line.is_empty()) {
            return Err(io::Error::other("liblouis did not translate every line"));
        }
        contracted.push(translated.join(" "));
    }
    Ok(contracted)
}

/// Splits a text between words into lines that are short enough for the translator. Only a word that is longer than a line is
/// split inside.
fn split_into_lines(text: &str) -> Vec<String> {
    super::cells::wrap(&super::cells::cells_of(text, None), MAX_LINE_CHARS)
        .into_iter()
        .map(|line| line.into_iter().map(|cell| cell.character).collect())
        .collect()
}
