//! A missing or failing speech-dispatcher.

use crate::fake_dispatcher::{FakeDispatcher, FakeProgram};
use testing::hub::HubProcess;
use testing::terminal::{AgentSession, ListenProcess};

/// Starts a listener without a dispatcher. `PATH` contains only the folder `programs`.
fn start_listener_without_dispatcher(address: &str, programs: &std::path::Path) -> ListenProcess {
    ListenProcess::start_with(address, &["--speech"], |command| {
        let socket = programs.join("none.sock");
        command.env("SPEECHD_ADDRESS", format!("unix_socket:{}", socket.display())).env("PATH", programs)
    })
}

#[test]
fn without_any_speech_program_announcements_are_only_printed() {
    let hub = HubProcess::start_in_memory();
    let folder = tempfile::tempdir().unwrap();
    let mut person = start_listener_without_dispatcher(&hub.address, folder.path());
    assert_eq!(
        person.next_line().unwrap(),
        "sayso: Nothing can be spoken here: speech-dispatcher is not installed, and espeak-ng is not installed. On Debian, install speech-dispatcher and speech-dispatcher-espeak-ng, or only espeak-ng. Messages are printed only."
    );
    person.read_until("Listening to");
    AgentSession::start(hub.client());
    person.read_until("session: local has started");
    person.type_line("faster");
    person.read_until("status: Speech is off.");
    person.type_line("quit");
    assert_eq!(person.wait_for_exit().1, 0);
}

#[test]
fn a_dispatcher_that_is_not_running_is_started() {
    let (hub, mut dispatcher) = (HubProcess::start_in_memory(), FakeDispatcher::not_running());
    let program = FakeProgram::install("speech-dispatcher", dispatcher.programs(), "");
    let _person = dispatcher.start_listener(&hub.address, &[]);
    let started = program.next();
    assert!(
        started.starts_with("with --spawn --communication-method unix_socket --socket-path /"),
        "{started}"
    );
    dispatcher.begin_listening();
    assert!(dispatcher.next_text().starts_with("notice: Connected."));
}

#[test]
fn without_a_dispatcher_espeak_speaks() {
    let hub = HubProcess::start_in_memory();
    let folder = tempfile::tempdir().unwrap();
    let espeak = FakeProgram::install_espeak(folder.path(), "");
    let mut person = start_listener_without_dispatcher(&hub.address, folder.path());
    person.read_until("Listening to");
    assert_eq!(espeak.next(), "with -b 1 --stdin -s 170 -v en");
    assert!(espeak.next().starts_with("notice: Connected."));
    let agent = AgentSession::start(hub.client());
    assert_eq!(espeak.next(), "with -b 1 --stdin -s 170 -v en");
    assert_eq!(espeak.next(), "session: local has started. Moving money.");
    agent.publish(r#"{"type":"aaep:agent.session.completed","summary_normal":"$(touch x) -v [[a]] <speak>; `id`","localization_hints":{"primary_language":"es-MX"}}"#);
    // Narration and the agent's text are spoken separately, each with a voice for its language.
    assert_eq!(espeak.next(), "with -b 1 --stdin -s 170 -v en");
    assert_eq!(espeak.next().trim_end(), "local has finished.");
    assert_eq!(espeak.next(), "with -b 1 --stdin -s 170 -v es-mx");
    assert_eq!(espeak.next(), "$(touch x) -v [ [ a]] <speak>; `id`");
}

#[test]
fn a_voice_that_espeak_does_not_have_is_replaced() {
    let hub = HubProcess::start_in_memory();
    let folder = tempfile::tempdir().unwrap();
    let espeak = FakeProgram::install_espeak(folder.path(), "case \"$*\" in *-v*) exit 1;; esac");
    let _person = start_listener_without_dispatcher(&hub.address, folder.path());
    assert_eq!(espeak.next(), "with -b 1 --stdin -s 170 -v en");
    let text = espeak.next();
    assert_eq!(espeak.next(), "with -b 1 --stdin -s 170");
    assert_eq!(espeak.next(), text);
}

#[test]
fn an_espeak_failure_is_reported() {
    let hub = HubProcess::start_in_memory();
    let folder = tempfile::tempdir().unwrap();
    let _espeak = FakeProgram::install_espeak(folder.path(), "exit 1");
    let mut person = start_listener_without_dispatcher(&hub.address, folder.path());
    person.read_until("notice: Speech: espeak-ng cannot speak. From now on, messages are printed only.");
    AgentSession::start(hub.client());
    person.read_until("session: local has started");
}

#[test]
fn when_the_dispatcher_dies_espeak_repeats_the_announcement() {
    let (hub, mut dispatcher) = (HubProcess::start_in_memory(), FakeDispatcher::start());
    let espeak = FakeProgram::install_espeak(dispatcher.programs(), "");
    let mut person = dispatcher.start_connected_listener(&hub.address, &["--pace", "100"]);
    AgentSession::start(hub.client());
    assert_eq!(dispatcher.next_text(), "session: local has started. Moving money.");
    dispatcher.stop();
    person.read_until("notice: Speech: speech-dispatcher stopped. From now on, espeak-ng speaks.");
    assert_eq!(espeak.next(), "with -b 1 --stdin -s 450 -v en");
    assert_eq!(espeak.next(), "session: local has started. Moving money.");
    assert_eq!(espeak.next(), "with -b 1 --stdin -s 450 -v en");
    assert!(espeak.next().starts_with("notice: Speech: speech-dispatcher stopped."));
}

#[test]
fn a_dead_dispatcher_without_a_fallback_is_reported() {
    let (hub, mut dispatcher) = (HubProcess::start_in_memory(), FakeDispatcher::start());
    let mut person = dispatcher.start_connected_listener(&hub.address, &[]);
    let agent = AgentSession::start(hub.client());
    dispatcher.next_text();
    dispatcher.stop();
    person.read_until("notice: Speech: speech-dispatcher stopped, and espeak-ng is not installed. From now on, messages are printed only.");
    let token = agent.ask_confirmation();
    person.read_until("ask: Yes or no?");
    person.type_line("yes");
    assert!(agent.wait_for_reply(&token, 30).contains("accept"));
    person.type_line("quit");
    assert_eq!(person.wait_for_exit().1, 0);
}

#[test]
fn speech_continues_when_the_dispatcher_returns() {
    let (hub, mut dispatcher) = (HubProcess::start_in_memory(), FakeDispatcher::start());
    let mut person = dispatcher.start_connected_listener(&hub.address, &["--pace", "10"]);
    AgentSession::start(hub.client());
    assert_eq!(dispatcher.next_text(), "session: local has started. Moving money.");
    dispatcher.disconnect();
    person.read_until("notice: Speech: speech-dispatcher stopped. It works again.");
    assert_eq!(dispatcher.next_command("SET self RATE"), "SET self RATE 10");
    assert_eq!(dispatcher.next_text(), "session: local has started. Moving money.");
}
