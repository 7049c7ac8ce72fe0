//! Audible tests: a real speech-dispatcher with espeak-ng speaks a session, which is recorded and analyzed.

use crate::audio_lab::AudioLab;
use crate::audio_samples::{AudioSamples, SAMPLE_RATE};
use testing::hub::HubProcess;
use testing::terminal::{AgentSession, ListenProcess};

/// The speech rate. A fast rate shortens the test, but at higher rates espeak-ng does not always produce the same sound.
const PACE: i8 = 30;
/// How many seconds at the start of a sound are compared.
const MATCH_SECONDS: usize = 2;
/// The similarity above which two sounds count as the same.
const MATCH_THRESHOLD: f64 = 0.75;

const LONG_SENTENCE: &str = "First I look at all the bills of the last twelve months, one after the other, beginning with the oldest, then I put the ones that are not paid yet in the order of their dates, then I ask the bank how much money there is, and only when all of this is done, which takes some time, do I tell you which of them can be paid today and which of them have to wait for the next month, or for the month after that, should there be nothing left by then.";

#[test]
#[ignore = "needs PulseAudio and speech-dispatcher: cargo xtask speech"]
fn a_session_is_audible_in_order_and_critical_speech_interrupts() {
    let (hub, lab) = (HubProcess::start_in_memory(), AudioLab::start());
    let tap = lab.open_tap();
    let mut person =
        ListenProcess::start_with(&hub.address, &["--speech", "--pace", &PACE.to_string()], |command| {
            command.env("SPEECHD_ADDRESS", format!("unix_socket:{}", tap.socket.display()))
        });
    person.read_until("Listening to");
    tap.wait_for_line("702 END");
    lab.wait_for_silence();
    let start = lab.position();

    let agent = AgentSession::start(hub.client());
    tap.wait_for_line("702 END");
    lab.wait_for_silence();
    let before_sentence = lab.position();
    agent.write_output(LONG_SENTENCE, false);
    agent.write_output("", true);
    tap.wait_for_line("701 BEGIN");
    // Waits until a good part of the long sentence is audible before the question comes.
    lab.wait_until(|recording| {
        recording.skip(before_sentence).count_audible_samples() > (MATCH_SECONDS + 1) * SAMPLE_RATE
    });
    let token = agent.ask_confirmation();
    tap.wait_for_line("CANCEL self");
    tap.wait_for_line("703 CANCELED");
    tap.wait_for_line("SET self PRIORITY important");
    tap.wait_for_line("701 BEGIN");
    tap.wait_for_line("702 END");
    // The long sentence starts again. Enter stops it.
    tap.wait_for_line("SET self PRIORITY message");
    tap.wait_for_line("701 BEGIN");
    lab.wait_for_sound(MATCH_SECONDS + 2);
    person.type_line("");
    tap.wait_for_line("CANCEL self");
    tap.wait_for_line("703 CANCELED");
    lab.wait_for_silence();
    person.type_line("no");
    assert!(agent.wait_for_reply(&token, 30).contains("reject"));
    tap.wait_for_line("Question 1: no.");
    tap.wait_for_line("702 END");
    tap.wait_for_line("702 END");
    lab.wait_for_silence();
    let recording = lab.samples_from(start);

    let synthesize = |text: &str| {
        let sound = lab.synthesize(text, PACE);
        assert!(sound.len() > SAMPLE_RATE / 2, "{text:?} is not audible");
        sound
    };
    let start_of = |sound: &[i16]| sound[..sound.len().min(MATCH_SECONDS * SAMPLE_RATE)].to_vec();
    let long_sentence = synthesize(&format!("agent: {LONG_SENTENCE}"));
    // A short line of the question, because espeak-ng speaks a long line slightly differently after a cancel.
    let question = synthesize("This cannot be undone.");
    let answer = synthesize("answer: Question 1: no.");
    let find = |from: usize, to: usize, sound: &[i16], label: &str| {
        let (at, similarity) = AudioSamples(&recording[from..to]).find(&start_of(sound));
        eprintln!(
            "{label} is audible at {} ms, similarity {similarity:.2}",
            (from + at) * 1000 / SAMPLE_RATE
        );
        assert!(similarity > MATCH_THRESHOLD, "{label} is not audible: {similarity}");
        from + at
    };
    // A text that was never spoken is not found, which shows that the comparison can tell sounds apart.
    let unspoken = synthesize("agent: The weather in Lagos is warm today, with some rain in the evening.");
    let (_, similarity) = AudioSamples(&recording).find(&start_of(&unspoken));
    assert!(similarity < MATCH_THRESHOLD, "a text that was never spoken is found: {similarity}");
    eprintln!("similarity of a text that was never spoken: {similarity:.2}");

    // Last, and only the first sentence: if it was played first, this sound matched less well in most runs.
    let session_start = synthesize("session: local has started.");
    let question_at = find(0, recording.len(), &question, "the question");
    let start_at = find(0, question_at, &session_start, "the start of the session");
    let sentence_at = find(start_at, question_at, &long_sentence, "the long sentence");
    let repeat_at = find(question_at, recording.len(), &long_sentence, "the long sentence again");
    let answer_at = find(repeat_at, recording.len(), &answer, "the answer");
    assert!(
        start_at < sentence_at
            && sentence_at < question_at
            && question_at < repeat_at
            && repeat_at < answer_at
    );
    assert!(
        question_at - sentence_at < long_sentence.len(),
        "the question came only after the end of the sentence"
    );
    assert!(answer_at - repeat_at < long_sentence.len(), "Enter did not stop the sentence");
}

#[test]
#[ignore = "needs PulseAudio and espeak-ng: cargo xtask speech"]
fn without_a_dispatcher_espeak_is_audible() {
    let (hub, lab) = (HubProcess::start_in_memory(), AudioLab::start());
    let programs = tempfile::tempdir().unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let espeak =
        std::env::split_paths(&path).map(|folder| folder.join("espeak-ng")).find(|path| path.exists());
    std::os::unix::fs::symlink(espeak.unwrap(), programs.path().join("espeak-ng")).unwrap();
    let unused_address = format!("unix_socket:{}", programs.path().join("none").display());
    let from = lab.position();
    let mut person = ListenProcess::start_with(&hub.address, &["--speech"], |command| {
        lab.configure(command);
        command.env("PATH", programs.path()).env("SPEECHD_ADDRESS", unused_address)
    });
    person.read_until("Listening to");
    let wait_for_speech = |from: usize, seconds: usize| {
        lab.wait_until(|recording| recording.skip(from).count_audible_samples() > seconds * SAMPLE_RATE);
        lab.wait_for_silence();
    };
    wait_for_speech(from, 2);
    let from = lab.position();
    let agent = AgentSession::start(hub.client());
    wait_for_speech(from, 1);
    let from = lab.position();
    agent.write_output(LONG_SENTENCE, false);
    agent.write_output("", true);
    lab.wait_until(|recording| recording.skip(from).count_audible_samples() > MATCH_SECONDS * SAMPLE_RATE);
    person.type_line("");
    lab.wait_for_silence();
    let stopped = lab.samples_from(from);
    // espeak-ng speaks fewer than 22 characters per second, so the complete sentence would be longer.
    assert!(
        AudioSamples(&stopped).count_audible_samples() < LONG_SENTENCE.len() * SAMPLE_RATE / 22,
        "Enter did not stop espeak-ng"
    );
    person.type_line("quit");
    assert_eq!(person.wait_for_exit().1, 0);
}
