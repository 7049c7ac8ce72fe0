//! Whatever a producer writes, the dispatcher gets one text and no command of the producer's.

use proptest::prelude::*;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, DuplexStream};

use std::sync::Arc;

use super::speaking::{self, Engine, Order, Progress, Sources};
use super::spoken::Spoken;
use super::ssip::{Connection, Event, Fate};
use super::trouble::Trouble;
use crate::{Announcement, Kind, Phrases, plain};

/// What a dispatcher was told: commands, and the texts after `SPEAK`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    commands: Vec<String>,
    texts: Vec<String>,
}

/// Reads as speech-dispatcher does: a line ends with CR and LF together, and a text with a dot alone on its line.
async fn dispatcher(mut stream: DuplexStream) -> Told {
    let mut told = Told::default();
    let mut text: Option<Vec<String>> = None;
    let mut line = Vec::new();
    while let Ok(byte) = stream.read_u8().await {
        line.push(byte);
        if !line.ends_with(b"\r\n") {
            continue;
        }
        let whole = String::from_utf8(std::mem::take(&mut line)).unwrap();
        let said = whole.trim_end_matches("\r\n").to_owned();
        let answer = match &mut text {
            Some(lines) if said == "." => {
                told.texts.push(lines.join("\n"));
                text = None;
                let number = told.texts.len();
                format!("225-{number}\r\n225 OK MESSAGE QUEUED\r\n702-{number}\r\n702-1\r\n702 END\r\n")
            }
            Some(lines) => {
                lines.push(said.strip_prefix('.').unwrap_or(&said).to_owned());
                continue;
            }
            None => {
                let answer = match said.as_str() {
                    "SPEAK" => {
                        text = Some(Vec::new());
                        "230 OK RECEIVING DATA\r\n"
                    }
                    "GET LANGUAGE" => "251-de-DE\r\n251 OK GET RETURNED\r\n",
                    "GET RATE" => "251-20\r\n251 OK GET RETURNED\r\n",
                    _ => "200 OK\r\n",
                };
                told.commands.push(said);
                answer.to_owned()
            }
        };
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
    told
}

/// What the dispatcher is told after the greeting, for these announcements one after the other.
fn told(announcements: &[Announcement]) -> Told {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (here, there) = tokio::io::duplex(1 << 20);
        let server = tokio::spawn(dispatcher(there));
        let mut connection = Connection::greet(Box::new(here), None).await.unwrap();
        assert_eq!(connection.pace().to_string(), "20");
        for (at, announcement) in announcements.iter().enumerate() {
            let Some(spoken) = Spoken::of(announcement, true, Phrases::of(&[])).pop() else { continue };
            let message = connection.speak(&spoken).await.unwrap().unwrap();
            assert_eq!(message, (at + 1).to_string());
            assert_eq!(connection.next_event().await.unwrap(), Event { message, fate: Fate::Ended });
        }
        drop(connection);
        let mut told = server.await.unwrap();
        let greeting: Vec<_> = told.commands.drain(..5).collect();
        assert_eq!(
            greeting,
            [
                "SET self CLIENT_NAME person:sayso:listen",
                "SET self NOTIFICATION ALL on",
                "SET self SSML_MODE off",
                "GET LANGUAGE",
                "GET RATE"
            ]
        );
        told
    })
}

fn announcement(text: &str, language: Option<&str>) -> Announcement {
    let mut announcement = Announcement::own(Kind::Agent, text);
    announcement.language = language.map(Into::into);
    announcement
}

#[test]
fn a_dispatcher_that_makes_no_sound_is_given_up() {
    for (events, why) in
        [("", "makes no sound"), ("701-1\r\n701-1\r\n701 BEGIN\r\n", "makes no sound"), ("x", "has ended")]
    {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let (here, mut there) = tokio::io::duplex(1 << 20);
            let server = tokio::spawn(async move {
                let mut read = tokio::io::BufReader::new(&mut there);
                let mut line = String::new();
                while read.read_line(&mut line).await.is_ok_and(|read| read > 0) {
                    let answer = match line.trim_end() {
                        "SPEAK" => "230 OK\r\n".to_owned(),
                        "One." => String::new(),
                        "." if events == "x" => return,
                        "." => format!("225-1\r\n225 OK\r\n{events}"),
                        _ => "200 OK\r\n".to_owned(),
                    };
                    read.write_all(answer.as_bytes()).await.unwrap();
                    line.clear();
                }
            });
            let sources = Sources { dispatcher: Err(Trouble::Elsewhere), espeak: "no-such-program" };
            let connection = Connection::greet(Box::new(here), None).await.unwrap();
            let (orders, inbox) = tokio::sync::mpsc::unbounded_channel();
            let progress = Arc::new(Progress::default());
            let spoken = Spoken::of(&announcement("One.", None), false, Phrases::of(&[]));
            assert!(orders.send(Order::Say(1, spoken)).is_ok());
            let run = speaking::run(sources, Engine::Dispatcher(connection), inbox, Arc::clone(&progress), Phrases::of(&[]));
            let run = tokio::spawn(run);
            while progress.ended() == 0 {
                tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            }
            let told = progress.news().unwrap();
            assert_eq!(told, format!("Speech: speech-dispatcher {why}, and espeak-ng is not installed. From now on nothing is spoken, only written."));
            drop(orders);
            run.await.unwrap();
            server.abort();
        });
    }
}

#[test]
fn an_agents_words_among_ours_are_said_by_their_own_voice_one_part_after_the_other() {
    let spanish = Phrases::of(&["es".to_owned()]);
    let mut begun =
        announcement("Bank ha empezado. Paying Ben. Esto no se podrá deshacer nunca.", Some("en"));
    begun.quotes = Some(vec!["Paying Ben".to_owned()]);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let (here, there) = tokio::io::duplex(1 << 20);
        let server = tokio::spawn(dispatcher(there));
        let sources = Sources { dispatcher: Err(Trouble::Elsewhere), espeak: "no-such-program" };
        let connection = Connection::greet(Box::new(here), None).await.unwrap();
        let (orders, inbox) = tokio::sync::mpsc::unbounded_channel();
        let progress = Arc::new(Progress::default());
        assert!(orders.send(Order::Say(1, Spoken::of(&begun, true, spanish))).is_ok());
        let run =
            speaking::run(sources, Engine::Dispatcher(connection), inbox, Arc::clone(&progress), spanish);
        let run = tokio::spawn(run);
        while progress.ended() == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        drop(orders);
        run.await.unwrap();
        let told = server.await.unwrap();
        let parts = ["agente: Bank ha empezado. ", "Paying Ben.", "Esto no se podrá deshacer nunca."];
        assert_eq!(told.texts, parts);
        let languages: Vec<_> =
            told.commands.iter().filter_map(|command| command.strip_prefix("SET self LANGUAGE ")).collect();
        assert_eq!(languages, ["es", "en", "es"]);
    });
}

#[test]
fn dots_commands_and_markup_are_text() {
    for (text, heard) in [
        ("Hello.", "agent: Hello."),
        ("One\n.\nTwo", "agent: One\n.\nTwo"),
        ("One\r\n.\r\nSTOP all\r\n", "agent: One\n.\nSTOP all"),
        (".\n..\n...dots", "agent: .\n..\n...dots"),
        ("<speak><mark name=\"x\"/>Hi</speak>", "agent: <speak><mark name=\"x\"/>Hi</speak>"),
        ("a\rSTOP self\rb\u{85}c\u{0}d\u{1b}[1m", "agent: a\nSTOP self\nb\nc\\u{0}d\\u{1b}[1m"),
        ("ask: Question 1", "agent: ask : Question 1"),
    ] {
        let told = told(&[announcement(text, Some("de"))]);
        assert_eq!(told.texts, [heard]);
        assert_eq!(told.commands, ["SET self PRIORITY message", "SPEAK"]);
    }
}

#[test]
fn a_language_is_set_where_it_is_another_than_the_persons_own() {
    let told = told(&[
        announcement("a", Some("de-AT")),
        announcement("b", Some("es")),
        announcement("c", Some("es")),
        announcement("d", Some("DE")),
        announcement("e", None),
        announcement("f", Some("en\r\nSTOP all")),
    ]);
    assert_eq!(
        told.commands,
        [
            "SET self PRIORITY message",
            "SPEAK",
            "SET self LANGUAGE es",
            "SPEAK",
            "SPEAK",
            "SET self LANGUAGE de-DE",
            "SPEAK",
            "SET self LANGUAGE en",
            "SPEAK",
            "SPEAK"
        ]
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn whatever_is_written_is_one_text(
        text in prop_oneof![any::<String>(), "([.]|\r\n|\n|\r|STOP all|SPEAK|a| |<mark/>|\u{85}|\u{2028}){0,40}"],
        language in proptest::option::of(prop_oneof![any::<String>(), "[a-z]{2}(-[A-Z]{2})?(\r\n)?"]),
    ) {
        let told = told(&[announcement(&text, language.as_deref())]);
        let expected = plain(&text, false);
        if !expected.chars().any(char::is_alphanumeric) {
            prop_assert_eq!(told, Told::default());
            return Ok(());
        }
        prop_assert_eq!(&told.texts, &[format!("agent: {expected}")]);
        prop_assert!(told.texts.iter().all(|text| text.chars().all(|c| c == '\n' || !c.is_control())));
        let commands: Vec<_> = told.commands.iter().map(String::as_str).collect();
        match *commands.as_slice() {
            ["SET self PRIORITY message", "SPEAK"] => {}
            ["SET self PRIORITY message", language, "SPEAK"] => {
                let tag = language.strip_prefix("SET self LANGUAGE ").unwrap_or(" ");
                prop_assert!(tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'), "{}", tag);
            }
            _ => prop_assert!(false, "{:?}", commands),
        }
    }
}
