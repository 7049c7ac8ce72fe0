//! What agents say about their work, in `sayso listen`: estimates, results, `tools` and `details`.

use testing::http::TestClient;
use testing::hub::HubProcess;
use testing::terminal::{AgentSession, ListenProcess};

const START: &str = r#"{"summary_normal":"Planning.","expected_duration_ms":180000,"request_text":"Plan my savings.",
    "tools_available":["fetch_balance","draft_plan"],
    "producer":{"agent_id":"planner","agent_version":"1.4.2","model":"a-model"},
    "states":[{"state":"projecting","words":{"en":"Projecting your savings.","es":"Proyectando sus ahorros."}}]}"#;

fn start_planner(client: TestClient) -> AgentSession {
    let response = client.post("/agent/v1/sessions", &START.replace('\n', " "));
    assert_eq!(response.status, 201, "{response:?}");
    let session_id = response.json_str("session_id");
    AgentSession { client, session_id }
}

#[test]
fn estimates_tools_details_and_own_states_are_heard() {
    let hub = HubProcess::start_in_memory();
    let mut person = ListenProcess::start_connected(&hub.address, &["--verbosity", "detailed"]);
    let agent = start_planner(hub.client());
    assert_eq!(person.next_line().unwrap(), "session: planner has started. Planning. About 3 minutes.");
    person.type_line("tools");
    assert_eq!(person.next_line().unwrap(), "status: planner has these tools: fetch balance, draft plan.");
    agent.publish(
        r#"{"type":"aaep:agent.state.changed","to_state":"projecting","expected_duration_ms":20000}"#,
    );
    assert_eq!(person.next_line().unwrap(), "agent: Projecting your savings. About 20 seconds.");
    agent.publish(
        r#"{"type":"aaep:agent.progress.updated","progress":{"step":1,"total_steps":2},"summary_normal":"Reading.","eta_ms":90000}"#,
    );
    assert_eq!(person.next_line().unwrap(), "progress: Reading. Step 1 of 2. About 2 minutes left.");
    person.type_line("details");
    assert_eq!(person.next_line().unwrap(), "status: Session 1, planner. Projecting your savings.");
    assert_eq!(person.next_line().unwrap(), "status: The request was: Plan my savings.");
    assert_eq!(person.next_line().unwrap(), "status: Version: 1.4.2. Model: a-model.");
    let left = person.next_line().unwrap();
    assert!(left.starts_with("status: About ") && left.ends_with(" left."), "{left}");
    person.type_line("status");
    let status = person.next_line().unwrap();
    assert!(status.starts_with("status: Session 1, planner. Projecting your savings. About "), "{status}");
    agent.publish(
        r#"{"type":"aaep:agent.session.completed","summary_normal":"Planned.","result_uri":"https://bank.example/plan?key=1"}"#,
    );
    person.read_until("session: planner has finished. Planned. The full result is at: bank.example.");
    person.type_line("quit");
    person.wait_for_exit();
}

#[test]
fn a_terse_listener_hears_the_result_in_short_and_programs_get_the_address() {
    let hub = HubProcess::start_in_memory();
    let mut person = ListenProcess::start_connected(&hub.address, &["--verbosity", "terse"]);
    let mut program = ListenProcess::start(&hub.address, &["--json"]);
    program.read_until("Listening to");
    let agent = start_planner(hub.client());
    agent.write_output("Save 1,200 dollars a month. ", false);
    agent.write_output("Review it every year.", true);
    agent.publish(
        r#"{"type":"aaep:agent.session.completed","summary_normal":"Planned.","output_summary":"A plan in two sentences.","result_uri":"https://bank.example/plan?key=1"}"#,
    );
    let end = "session: planner has finished. Planned. Result: A plan in two sentences.";
    let lines = person.read_until(end);
    assert!(lines.iter().all(|line| !line.contains("1,200")), "{lines:?}");
    person.type_line("details");
    person.read_until("status: The full text is: Save 1,200 dollars a month.");
    assert_eq!(person.next_line().unwrap(), "status: Review it every year.");
    let json = program.read_until("planner has finished").pop().unwrap();
    assert!(json.contains(r#""link":"https://bank.example/plan?key=1""#), "{json}");
}
