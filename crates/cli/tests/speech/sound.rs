//! What is heard: a session, spoken by a real speech-dispatcher with espeak-ng, and recorded.

use crate::studio::Studio;
use crate::tape::{RATE, Tape};
use testing::hub::Hub;
use testing::terminal::{Agent, Person};

/// Rather fast, so that the test is; faster than that, espeak-ng does not say the same twice alike.
const PACE: i8 = 30;
/// Seconds of a sound by which it is known.
const KNOWN: usize = 2;
/// More than this is the same sound.
const SAME: f64 = 0.75;

const LONG: &str = "First I look at all the bills of the last twelve months, one after the other, beginning with the oldest, then I put the ones that are not paid yet in the order of their dates, then I ask the bank how much money there is, and only when all of this is done, which takes some time, do I tell you which of them can be paid today and which of them have to wait for the next month, or for the month after that, should there be nothing left by then.";

#[test]
#[ignore = "needs PulseAudio and speech-dispatcher: cargo xtask speech"]
fn a_session_is_heard_in_order_and_what_is_critical_cuts_in() {
    let (hub, studio) = (Hub::open(), Studio::opens());
    let tap = studio.tap();
    let mut person =
        Person::listens_as(&hub.address, &["--speech", "--pace", &PACE.to_string()], |command| {
            command.env("SPEECHD_ADDRESS", format!("unix_socket:{}", tap.socket.display()))
        });
    person.hears("Listening to");
    tap.until("702 END");
    studio.silence();
    let start = studio.position();

    let agent = Agent::starts(hub.client());
    tap.until("702 END");
    studio.silence();
    let spoken = studio.position();
    agent.writes(LONG, false);
    agent.writes("", true);
    tap.until("701 BEGIN");
    // A good piece of the long sentence has sounded when the question comes.
    studio.wait(|tape| tape.from(spoken).sounding() > (KNOWN + 1) * RATE);
    let token = agent.asks();
    tap.until("CANCEL self");
    tap.until("703 CANCELED");
    tap.until("SET self PRIORITY important");
    tap.until("701 BEGIN");
    tap.until("702 END");
    // Then it is begun again; Enter stops it.
    tap.until("SET self PRIORITY message");
    tap.until("701 BEGIN");
    studio.sounds_for(KNOWN + 2);
    person.types("");
    tap.until("CANCEL self");
    tap.until("703 CANCELED");
    studio.silence();
    person.types("no");
    assert!(agent.waits(&token, 30).contains("reject"));
    tap.until("You say no to question 1.");
    tap.until("702 END");
    tap.until("702 END");
    studio.silence();
    let tape = studio.recorded(start);

    let sound = |text: &str| {
        let sound = studio.sound_of(text, PACE);
        assert!(sound.len() > RATE / 2, "{text:?} makes no sound");
        sound
    };
    let known = |sound: &[i16]| sound[..sound.len().min(KNOWN * RATE)].to_vec();
    let begun = sound("session: local has begun. Moving money.");
    let long = sound(&format!("agent: {LONG}"));
    let ask = sound(
        "ask: Question 1, from local: May I send 5 euro to Ben?\nWhat it would do: Send 5 euro to Ben.",
    );
    let answer = sound("answer: You say no to question 1.");
    let find = |from: usize, to: usize, sound: &[i16], what: &str| {
        let (at, likeness) = Tape(&tape[from..to]).find(&known(sound));
        eprintln!("{what} is heard at {} ms, {likeness:.2}", (from + at) * 1000 / RATE);
        assert!(likeness > SAME, "{what} is not heard: {likeness}");
        from + at
    };
    // What was never said is not found: the ear of this test can tell sounds apart.
    let never = sound("agent: The weather in Lagos is warm today, with some rain in the evening.");
    let (_, likeness) = Tape(&tape).find(&known(&never));
    assert!(likeness < SAME, "what was never said is heard: {likeness}");
    eprintln!("what was never said: {likeness:.2}");

    let asked = find(0, tape.len(), &ask, "the question");
    let first = find(0, asked, &begun, "the beginning");
    let second = find(first, asked, &long, "the long sentence");
    let again = find(asked, tape.len(), &long, "the long sentence again");
    let answered = find(again, tape.len(), &answer, "the answer");
    assert!(first < second && second < asked && asked < again && again < answered);
    assert!(asked - second < long.len(), "the question waited for the end of the sentence");
    assert!(answered - again < long.len(), "Enter did not stop the sentence");
}

#[test]
#[ignore = "needs PulseAudio and espeak-ng: cargo xtask speech"]
fn without_a_dispatcher_espeak_is_heard() {
    let (hub, studio) = (Hub::open(), Studio::opens());
    let programs = tempfile::tempdir().unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let espeak =
        std::env::split_paths(&path).map(|folder| folder.join("espeak-ng")).find(|path| path.exists());
    std::os::unix::fs::symlink(espeak.unwrap(), programs.path().join("espeak-ng")).unwrap();
    let nowhere = format!("unix_socket:{}", programs.path().join("none").display());
    let from = studio.position();
    let mut person = Person::listens_as(&hub.address, &["--speech"], |command| {
        studio.furnish(command);
        command.env("PATH", programs.path()).env("SPEECHD_ADDRESS", nowhere)
    });
    person.hears("Listening to");
    let heard = |from: usize, seconds: usize| {
        studio.wait(|tape| tape.from(from).sounding() > seconds * RATE);
        studio.silence();
    };
    heard(from, 2);
    let from = studio.position();
    let agent = Agent::starts(hub.client());
    heard(from, 1);
    let from = studio.position();
    agent.writes(LONG, false);
    agent.writes("", true);
    studio.wait(|tape| tape.from(from).sounding() > KNOWN * RATE);
    person.types("");
    studio.silence();
    let stopped = studio.recorded(from);
    assert!(Tape(&stopped).sounding() < LONG.len() * RATE / 22, "Enter did not stop espeak-ng");
    person.types("quit");
    assert_eq!(person.ends().1, 0);
}
