//! Tests of speech output with a fake dispatcher. Whatever a producer writes, the dispatcher receives it as text, never as a
//! command.

use proptest::prelude::*;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, DuplexStream};

use std::sync::Arc;

use super::engine_error::SpeechEngineError;
use super::speech_segment::SpeechSegment;
use super::speech_task::{self, SpeechCommand, SpeechEngine, SpeechEngineSources, SpeechStatus};
use super::ssip::{SsipConnection, SsipEvent, SsipEventKind};
use crate::announcement_text::TextPart::{Agent, Sayso};
use crate::{Announcement, AnnouncementKind, AnnouncementText, Phrases, sanitize};

/// The input of a dispatcher: commands, and the texts after `SPEAK`.
#[derive(Debug, Default, PartialEq, Eq)]
struct DispatcherLog {
    commands: Vec<String>,
    texts: Vec<String>,
}

/// Reads like speech-dispatcher: a line ends with CR LF, and a text ends with a line that contains only a dot.
async fn run_fake_dispatcher(mut stream: DuplexStream) -> DispatcherLog {
    let mut log = DispatcherLog::default();
    let mut text: Option<Vec<String>> = None;
    let mut line = Vec::new();
    while let Ok(byte) = stream.read_u8().await {
        line.push(byte);
        if !line.ends_with(b"\r\n") {
            continue;
        }
        let received = String::from_utf8(std::mem::take(&mut line)).unwrap();
        let content = received.trim_end_matches("\r\n").to_owned();
        let reply = match &mut text {
            Some(lines) if content == "." => {
                log.texts.push(lines.join("\n"));
                text = None;
                let number = log.texts.len();
                format!("225-{number}\r\n225 OK MESSAGE QUEUED\r\n702-{number}\r\n702-1\r\n702 END\r\n")
            }
            Some(lines) => {
                lines.push(content.strip_prefix('.').unwrap_or(&content).to_owned());
                continue;
            }
            None => {
                let reply = match content.as_str() {
                    "SPEAK" => {
                        text = Some(Vec::new());
                        "230 OK RECEIVING DATA\r\n"
                    }
                    "GET LANGUAGE" => "251-de-DE\r\n251 OK GET RETURNED\r\n",
                    "GET RATE" => "251-20\r\n251 OK GET RETURNED\r\n",
                    _ => "200 OK\r\n",
                };
                log.commands.push(content);
                reply.to_owned()
            }
        };
        stream.write_all(reply.as_bytes()).await.unwrap();
    }
    log
}

/// Speaks these announcements and returns what the dispatcher receives after the handshake.
fn speak_and_log(announcements: &[Announcement]) -> DispatcherLog {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, server_stream) = tokio::io::duplex(1 << 20);
        let server = tokio::spawn(run_fake_dispatcher(server_stream));
        let mut connection = SsipConnection::handshake(Box::new(client), None).await.unwrap();
        assert_eq!(connection.rate().to_string(), "20");
        for (at, announcement) in announcements.iter().enumerate() {
            let Some(segment) =
                SpeechSegment::from_announcement(announcement, false, Phrases::for_languages(&[])).pop()
            else {
                continue;
            };
            let message_id = connection.speak(&segment).await.unwrap().unwrap();
            assert_eq!(message_id, (at + 1).to_string());
            assert_eq!(
                connection.next_event().await.unwrap(),
                SsipEvent { message_id, kind: SsipEventKind::Ended }
            );
        }
        drop(connection);
        let mut log = server.await.unwrap();
        let handshake: Vec<_> = log.commands.drain(..5).collect();
        assert_eq!(
            handshake,
            [
                "SET self CLIENT_NAME person:sayso:listen",
                "SET self NOTIFICATION ALL on",
                "SET self SSML_MODE off",
                "GET LANGUAGE",
                "GET RATE"
            ]
        );
        log
    })
}

fn announcement(text: &str, language: Option<&str>) -> Announcement {
    let mut announcement = Announcement::new(AnnouncementKind::Agent, AnnouncementText::from_agent(text));
    announcement.language = language.map(Into::into);
    announcement
}

/// Stands for a dispatcher that closes the connection instead of sending events.
const DISCONNECT: &str = "disconnect";

#[test]
fn a_dispatcher_that_makes_no_sound_or_disconnects_is_abandoned() {
    for (events, why) in [
        ("", "makes no sound"),
        ("701-1\r\n701-1\r\n701 BEGIN\r\n", "makes no sound"),
        (DISCONNECT, "stopped"),
    ] {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let (client, mut server_stream) = tokio::io::duplex(1 << 20);
            let server = tokio::spawn(async move {
                let mut reader = tokio::io::BufReader::new(&mut server_stream);
                let mut line = String::new();
                while reader.read_line(&mut line).await.is_ok_and(|read| read > 0) {
                    let reply = match line.trim_end() {
                        "SPEAK" => "230 OK\r\n".to_owned(),
                        "One." => String::new(),
                        "." if events == DISCONNECT => return,
                        "." => format!("225-1\r\n225 OK\r\n{events}"),
                        _ => "200 OK\r\n".to_owned(),
                    };
                    reader.write_all(reply.as_bytes()).await.unwrap();
                    line.clear();
                }
            });
            let sources = SpeechEngineSources { dispatcher: Err(SpeechEngineError::NotLocal), espeak: "no-such-program" };
            let connection = SsipConnection::handshake(Box::new(client), None).await.unwrap();
            let (commands, receiver) = tokio::sync::mpsc::unbounded_channel();
            let status = Arc::new(SpeechStatus::default());
            let segments = SpeechSegment::from_announcement(&announcement("One.", None), false, Phrases::for_languages(&[]));
            assert!(commands.send(SpeechCommand::Speak(1, segments)).is_ok());
            let run = speech_task::run(sources, SpeechEngine::Dispatcher(connection), receiver, Arc::clone(&status), Phrases::for_languages(&[]));
            let run = tokio::spawn(run);
            while status.last_finished() == 0 {
                tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            }
            let notice = status.take_notice().unwrap();
            assert_eq!(notice, format!("Speech: speech-dispatcher {why}, and espeak-ng is not installed. From now on, messages are printed only."));
            drop(commands);
            run.await.unwrap();
            server.abort();
        });
    }
}

#[test]
fn agent_text_is_spoken_in_its_own_language_in_order() {
    let spanish = Phrases::for_languages(&["es".to_owned()]);
    let text = AnnouncementText::from_sentences(&[
        Sayso("Bank ha empezado."),
        Agent("Paying Ben"),
        Sayso("Esto no se puede deshacer."),
    ]);
    let mut bilingual = Announcement::new(AnnouncementKind::Agent, text);
    bilingual.language = Some("en".into());
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let (client, server_stream) = tokio::io::duplex(1 << 20);
        let server = tokio::spawn(run_fake_dispatcher(server_stream));
        let sources =
            SpeechEngineSources { dispatcher: Err(SpeechEngineError::NotLocal), espeak: "no-such-program" };
        let connection = SsipConnection::handshake(Box::new(client), None).await.unwrap();
        let (commands, receiver) = tokio::sync::mpsc::unbounded_channel();
        let status = Arc::new(SpeechStatus::default());
        assert!(
            commands
                .send(SpeechCommand::Speak(1, SpeechSegment::from_announcement(&bilingual, true, spanish)))
                .is_ok()
        );
        let run = speech_task::run(
            sources,
            SpeechEngine::Dispatcher(connection),
            receiver,
            Arc::clone(&status),
            spanish,
        );
        let run = tokio::spawn(run);
        while status.last_finished() == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        drop(commands);
        run.await.unwrap();
        let log = server.await.unwrap();
        let parts = ["agente: Bank ha empezado. ", "Paying Ben.", "Esto no se puede deshacer."];
        assert_eq!(log.texts, parts);
        let languages: Vec<_> =
            log.commands.iter().filter_map(|command| command.strip_prefix("SET self LANGUAGE ")).collect();
        assert_eq!(languages, ["es", "en", "es"]);
    });
}

#[test]
fn dots_commands_and_markup_are_spoken_as_text() {
    for (text, expected) in [
        ("Hello.", "Hello."),
        ("One\n.\nTwo", "One\n.\nTwo"),
        ("One\r\n.\r\nSTOP all\r\n", "One\n.\nSTOP all"),
        (".\n..\n...dots", ".\n..\n...dots"),
        ("<speak><mark name=\"x\"/>Hi</speak>", "<speak><mark name=\"x\"/>Hi</speak>"),
        ("a\rSTOP self\rb\u{85}c\u{0}d\u{1b}[1m", "a\nSTOP self\nb\nc\\u{0}d\\u{1b}[1m"),
        ("ask: Question 1", "ask : Question 1"),
    ] {
        let log = speak_and_log(&[announcement(text, Some("de"))]);
        assert_eq!(log.texts, [expected]);
        assert_eq!(log.commands, ["SET self PRIORITY message", "SPEAK"]);
    }
}

#[test]
fn the_language_is_set_only_if_it_differs_from_the_persons_own() {
    let log = speak_and_log(&[
        announcement("a", Some("de-AT")),
        announcement("b", Some("es")),
        announcement("c", Some("es")),
        announcement("d", Some("DE")),
        announcement("e", None),
        announcement("f", Some("en\r\nSTOP all")),
    ]);
    assert_eq!(
        log.commands,
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
    fn any_input_is_sent_as_one_text(
        text in prop_oneof![any::<String>(), "([.]|\r\n|\n|\r|STOP all|SPEAK|a| |<mark/>|\u{85}|\u{2028}){0,40}"],
        language in proptest::option::of(prop_oneof![any::<String>(), "[a-z]{2}(-[A-Z]{2})?(\r\n)?"]),
    ) {
        let log = speak_and_log(&[announcement(&text, language.as_deref())]);
        let expected = sanitize(&text, false);
        if !expected.chars().any(char::is_alphanumeric) {
            prop_assert_eq!(log, DispatcherLog::default());
            return Ok(());
        }
        prop_assert_eq!(&log.texts, &[expected]);
        prop_assert!(log.texts.iter().all(|text| text.chars().all(|c| c == '\n' || !c.is_control())));
        let commands: Vec<_> = log.commands.iter().map(String::as_str).collect();
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
