//! Hubs that reject or reduce the requested capabilities, and hubs that send incomplete events.

use crate::listen::fake_hub::{FakeHub, accepted_message, event_block, rejected_message};
use testing::terminal::ListenProcess;

const SUBSCRIBE: &str = "POST /aaep/v1/subscriptions";
const QUESTION: &str = r#""urgency":"critical","action":"Send it.","consequence":"It is gone.","reply_token":"rpl_1","timeout_seconds":310,"default_decision":"reject""#;

#[test]
fn after_a_rejection_fewer_capabilities_are_requested_once() {
    let rejection = rejected_message("capabilities_incompatible", "Two extensions have the prefix sayso.");
    let hub = FakeHub::start_with_responses(&[rejection.clone(), accepted_message("{}", "")]);
    let mut person = ListenProcess::start(&hub.address, &["--rate", "5", "--lang", "de"]);
    assert_eq!(
        person.next_line().unwrap(),
        "notice: The hub cannot provide what was requested. The hub says: Two extensions have the prefix sayso. Trying again with a smaller request."
    );
    let [first, second] = [(); 2].map(|()| hub.next_request(SUBSCRIBE)["capabilities"].clone());
    assert_eq!(first["supported_extensions"][0], "urn:sayso:context:v1");
    assert_eq!(second.get("supported_extensions"), None, "{second}");
    // Capabilities that a person needs are still requested.
    assert_eq!(
        (&second["supports_confirmation_reply"], &second["languages"][0]),
        (&true.into(), &"de".into())
    );
    let mut stream = hub.next_stream();
    stream.send_event(1, "tool.invoked", r#""tool":"t","summary_normal":"Heard.""#);
    person.read_until("tool: Heard.");
    // There is no third request: after a second rejection the listener exits.
    let hub = FakeHub::start_with_responses(&[rejection]);
    let (output, code) = ListenProcess::start(&hub.address, &[]).wait_for_exit();
    assert_eq!((output.len(), code), (2, 2), "{output:?}");
    assert_eq!(hub.requests_so_far().len(), 2);
}

#[test]
fn reduced_capabilities_are_accepted_and_announced() {
    let hub = FakeHub::start_with_responses(&[accepted_message(
        r#"{"max_events_per_second":3,"languages":[]}"#,
        "",
    )]);
    let mut person = ListenProcess::start(&hub.address, &["--rate", "50"]);
    person.read_until("notice: The hub sends at most 3 events a second.");
    hub.next_stream().send_event(1, "tool.invoked", r#""tool":"t","summary_normal":"Heard.""#);
    let lines = person.read_until("tool: Heard.");
    assert!(!lines.iter().any(|line| line.starts_with("error")), "{lines:#?}");
}

#[test]
fn a_slow_listener_requests_a_lower_rate() {
    let hub = FakeHub::start_with_responses(&[accepted_message("{}", "")]);
    let mut person = ListenProcess::start_connected(&hub.address, &[]);
    assert_eq!(hub.next_request(SUBSCRIBE)["capabilities"].get("max_events_per_second"), None);
    for rate in [50, 25] {
        hub.next_stream().close("slow_consumer");
        person.read_until(
            "notice: Messages came faster than they could be read here, so the hub disconnected.",
        );
        assert_eq!(hub.next_request(SUBSCRIBE)["capabilities"]["max_events_per_second"], rate);
        person.read_until(&format!("the hub is now asked for at most {rate} events a second."));
        person.read_until("notice: Reconnected");
    }
    // A later renegotiation does not raise the rate again.
    person.type_line("quieter");
    let request = hub.next_request("POST /aaep/v1/replies");
    assert_eq!(
        (&request["type"], &request["capabilities"]["max_events_per_second"]),
        (&"subscription.renegotiate".into(), &25.into())
    );
}

#[test]
fn events_in_flight_during_a_renegotiation_are_announced() {
    let hub = FakeHub::start_with_responses(&[accepted_message("{}", "")]);
    let mut person = ListenProcess::start_connected(&hub.address, &["--verbosity", "detailed"]);
    let mut stream = hub.next_stream();
    let chunk = |text: &str, position: usize| {
        format!(
            r#""output_id":"out_1","chunk":"{text}","position":{position},"coalesce_hint":"none","complete":false"#
        )
    };
    stream.send_event(1, "output.streaming", &chunk("Half of ", 0));
    person.type_line("quieter");
    assert_eq!(hub.next_request("POST /aaep/v1/replies")["type"], "subscription.renegotiate");
    // These events still follow the previous subscription: detailed summaries and small chunks.
    stream.send_event(2, "output.streaming", &chunk("a sentence. ", 8));
    let summaries = r#""tool":"t","summary_normal":"Looking.","summary_detailed":"Looking into all of it.""#;
    stream.send_event(3, "tool.invoked", summaries);
    let lines = person.read_until("tool: Looking.");
    assert_eq!(lines.iter().filter(|line| **line == "agent: Half of a sentence.").count(), 1, "{lines:#?}");
    assert!(!lines.iter().any(|line| line.starts_with("error")), "{lines:#?}");
}

#[test]
fn an_incomplete_event_is_not_announced() {
    let hub = FakeHub::start_with_responses(&[accepted_message("{}", "")]);
    let mut person = ListenProcess::start_connected(&hub.address, &[]);
    let mut stream = hub.next_stream();
    let question = event_block(1, "awaiting.confirmation", QUESTION);
    stream.send_raw(&question[..question.len() - 2]);
    drop(stream);
    let lines = person.read_until("notice: Connection to the hub lost");
    assert_eq!(lines.len(), 1, "{lines:#?}");
    person.read_until("notice: Reconnected");
    person.type_line("yes");
    person.read_until("error: No question is open. Nothing was sent.");
    let mut stream = hub.next_stream();
    let (first, last) = question.split_at(question.len() / 2);
    stream.send_raw(first);
    person.type_line("status");
    let lines = person.read_until("status: No agent is working.");
    assert!(!lines.iter().any(|line| line.starts_with("ask")), "{lines:#?}");
    stream.send_raw(last);
    person.read_until("ask: You have 5 minutes.");
}
