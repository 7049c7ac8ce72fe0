//! Hubs that cannot give what was asked for, give less, or give it in pieces.

use crate::listen::fake::{Fake, accepted, block, rejected};
use testing::terminal::Person;

const SUBSCRIBE: &str = "POST /aaep/v1/subscriptions";
const QUESTION: &str = r#""urgency":"critical","action":"Send it.","consequence":"It is gone.","reply_token":"rpl_1","timeout_seconds":330,"default_decision":"reject""#;

#[test]
fn what_stood_in_the_way_is_left_out_and_asked_again() {
    let refusal = rejected("capabilities_incompatible", "Two extensions have the prefix sayso.");
    let fake = Fake::answering(&[refusal.clone(), accepted("{}", "")]);
    let mut person = Person::listens(&fake.address, &["--rate", "5", "--lang", "de"]);
    assert_eq!(
        person.next().unwrap(),
        "notice: The hub cannot give what was asked for. It says: Two extensions have the prefix sayso. It was asked again, for less."
    );
    let [first, second] = [(); 2].map(|()| fake.is_asked(SUBSCRIBE)["capabilities"].clone());
    assert_eq!(first["supported_extensions"][0], "urn:sayso:context:v1");
    assert_eq!(second.get("supported_extensions"), None, "{second}");
    // What a person cannot do without is still there.
    assert_eq!(
        (&second["supports_confirmation_reply"], &second["languages"][0]),
        (&true.into(), &"de".into())
    );
    let mut stream = fake.stream();
    stream.tells(1, "tool.invoked", r#""tool":"t","summary_normal":"Heard.""#);
    person.hears("tool: Heard.");
    // It is not asked a third time, and whoever refuses that, too, is left.
    let fake = Fake::answering(&[refusal]);
    let (said, code) = Person::listens(&fake.address, &[]).ends();
    assert_eq!((said.len(), code), (2, 2), "{said:?}");
    assert_eq!(fake.was_asked().len(), 2);
}

#[test]
fn lower_terms_are_taken_and_said() {
    let fake = Fake::answering(&[accepted(r#"{"max_events_per_second":3,"languages":[]}"#, "")]);
    let mut person = Person::listens(&fake.address, &["--rate", "50"]);
    person.hears("notice: The hub gives 3 events in a second at most.");
    fake.stream().tells(1, "tool.invoked", r#""tool":"t","summary_normal":"Heard.""#);
    let told = person.hears("tool: Heard.");
    assert!(!told.iter().any(|line| line.starts_with("error")), "{told:#?}");
}

#[test]
fn who_could_not_keep_up_asks_for_less() {
    let fake = Fake::answering(&[accepted("{}", "")]);
    let mut person = Person::is_there(&fake.address, &[]);
    assert_eq!(fake.is_asked(SUBSCRIBE)["capabilities"].get("max_events_per_second"), None);
    for rate in [50, 25] {
        fake.stream().closes("slow_consumer");
        person.hears("notice: More came than could be taken here, so the hub has let go.");
        assert_eq!(fake.is_asked(SUBSCRIBE)["capabilities"]["max_events_per_second"], rate);
        person.hears(&format!("the hub is now asked for {rate} events in a second at most."));
        person.hears("notice: Connected again");
    }
    // Nor is more asked for with the next wish.
    person.types("quieter");
    let wish = fake.is_asked("POST /aaep/v1/replies");
    assert_eq!(
        (&wish["type"], &wish["capabilities"]["max_events_per_second"]),
        (&"subscription.renegotiate".into(), &25.into())
    );
}

#[test]
fn what_was_on_its_way_when_the_terms_changed_is_heard() {
    let fake = Fake::answering(&[accepted("{}", "")]);
    let mut person = Person::is_there(&fake.address, &["--verbosity", "detailed"]);
    let mut stream = fake.stream();
    let chunk = |text: &str, position: usize| {
        format!(
            r#""output_id":"out_1","chunk":"{text}","position":{position},"coalesce_hint":"none","complete":false"#
        )
    };
    stream.tells(1, "output.streaming", &chunk("Half of ", 0));
    person.types("quieter");
    assert_eq!(fake.is_asked("POST /aaep/v1/replies")["type"], "subscription.renegotiate");
    // As long, and cut as finely, as was agreed before.
    stream.tells(2, "output.streaming", &chunk("a sentence. ", 8));
    let all = r#""tool":"t","summary_normal":"Looking.","summary_detailed":"Looking into all of it.""#;
    stream.tells(3, "tool.invoked", all);
    let told = person.hears("tool: Looking.");
    assert_eq!(told.iter().filter(|line| **line == "agent: Half of a sentence.").count(), 1, "{told:#?}");
    assert!(!told.iter().any(|line| line.starts_with("error")), "{told:#?}");
}

#[test]
fn of_an_event_that_is_not_whole_nothing_is_said() {
    let fake = Fake::answering(&[accepted("{}", "")]);
    let mut person = Person::is_there(&fake.address, &[]);
    let mut stream = fake.stream();
    let question = block(1, "awaiting.confirmation", QUESTION);
    stream.raw(&question[..question.len() - 2]);
    drop(stream);
    let told = person.hears("notice: The connection to the hub is lost");
    assert_eq!(told.len(), 1, "{told:#?}");
    person.hears("notice: Connected again");
    person.types("yes");
    person.hears("error: No question is open. Nothing was sent.");
    let mut stream = fake.stream();
    let (first, last) = question.split_at(question.len() / 2);
    stream.raw(first);
    person.types("status");
    let told = person.hears("status: You hear");
    assert!(!told.iter().any(|line| line.starts_with("ask")), "{told:#?}");
    stream.raw(last);
    person.hears("ask: You have 5 minutes.");
}
