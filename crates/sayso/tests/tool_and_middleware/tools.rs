//! Functions with `#[sayso::tool]`.

use std::future::pending;
use std::sync::{Arc, Mutex};

use sayso::{Argument, CallError, Error, ResolvedBy, Session, StopReason, current, within};
use serde_json::{Value, json};

use crate::support::fixture::{HubFixture, TestListener, event_kinds};

/// The calls that were executed.
type CallLog = Arc<Mutex<Vec<String>>>;

fn logged_calls(log: &CallLog) -> Vec<String> {
    log.lock().unwrap().clone()
}

#[sayso::tool(
    risk = "high",
    irreversible,
    action = "Transfer {amount} from {from} to {to}.",
    consequence = "The {amount} are gone at once.",
    done = "{amount} are with {to}.",
    skip(log)
)]
async fn transfer(log: &CallLog, from: &str, to: String, amount: u32) -> Result<u64, String> {
    if to == "nobody" {
        return Err("nobody has no account, and password: hunter2 is wrong".to_owned());
    }
    let mut log = log.lock().map_err(|error| error.to_string())?;
    log.push(format!("{from} {to} {amount}"));
    Ok(4711)
}

#[sayso::tool(action = "Look for {name:?}.", risk = "medium", timeout = "10m")]
async fn find(session: &Session, name: &str) -> std::io::Result<String> {
    assert_eq!(current().map(|current| current.id().to_owned()).as_deref(), Some(session.id()));
    Ok(format!("{name} of {}", session.id()))
}

pub(crate) async fn a_tool_asks_announces_runs_and_reports(mut fixture: HubFixture) {
    let session = fixture.session().await;
    let call_log = CallLog::default();
    let call = within(&session, transfer(&call_log, "checking", "Ben".to_owned(), 500));
    let answering = async {
        let events = fixture.listener.events_until("awaiting.confirmation").await;
        assert!(logged_calls(&call_log).is_empty());
        fixture.listener.decide(events.last().unwrap(), "accept").await;
        events
    };
    let (result, before) = tokio::join!(call, answering);
    assert_eq!(result, Ok(4711));
    assert_eq!(logged_calls(&call_log), ["checking Ben 500"]);
    session.finish("Done.").await.unwrap();
    let after = fixture.listener.events_until("session.completed").await;
    assert_eq!(event_kinds(&before).last().unwrap(), "awaiting.confirmation");
    assert!(!event_kinds(&before).contains(&"tool.invoked".to_owned()));
    let expected = [
        "thinking",
        "calling_tool",
        "tool.invoked",
        "tool.completed success",
        "thinking",
        "session.completed",
    ];
    assert_eq!(event_kinds(&after), expected);
    let question = before.last().unwrap();
    assert_eq!(question["action"], "Transfer 500 from checking to Ben.");
    assert_eq!(question["consequence"], "The 500 are gone at once.");
    assert_eq!((&question["risk_level"], &question["irreversible"]), (&json!("high"), &json!(true)));
    let invoked = find_event(&after, "tool.invoked");
    assert_eq!((&invoked["tool"], &invoked["summary_normal"]), (&json!("transfer"), &question["action"]));
    assert_eq!(find_event(&after, "tool.completed")["summary_normal"], "500 are with Ben.");
    // The answer is bound to these arguments. The skipped one is not part of them.
    let action = r#"{"from":"checking","to":"Ben","amount":500}"#;
    let action = aaep::consent::BoundAction::new("transfer", action).unwrap();
    assert_eq!(question["extensions"]["sayso"]["action_digest"], action.digest().to_string());
}

fn find_event<'e>(events: &'e [Value], kind: &str) -> &'e Value {
    events.iter().find(|event| event["type"] == format!("aaep:agent.{kind}")).unwrap()
}

pub(crate) async fn a_refused_tool_never_runs(mut fixture: HubFixture) {
    let session = fixture.session().await;
    let call_log = CallLog::default();
    let call = within(&session, transfer(&call_log, "checking", "Ben".to_owned(), 500));
    let (refused, _) = tokio::join!(call, fixture.listener.decide_next("reject"));
    match refused {
        Err(CallError::Refused(refusal)) => assert_eq!(refusal.by, ResolvedBy::Reply),
        other => panic!("{other:?}"),
    }
    assert!(logged_calls(&call_log).is_empty());
    session.cancel("Nothing was paid.").await.unwrap();
    let kinds = event_kinds(&fixture.listener.events_until("session.cancelled").await);
    assert!(!kinds.contains(&"tool.invoked".to_owned()), "{kinds:?}");
}

pub(crate) async fn a_tool_without_a_session_does_nothing(_fixture: HubFixture) {
    let call_log = CallLog::default();
    let result = transfer(&call_log, "checking", "Ben".to_owned(), 500).await;
    assert_eq!(result, Err(CallError::Session(Error::NoSession)));
    assert!(logged_calls(&call_log).is_empty());
    // A spawned task does not inherit the session.
    assert!(tokio::spawn(async { current().is_none() }).await.unwrap());
}

pub(crate) async fn a_tool_below_high_risk_is_only_announced(mut fixture: HubFixture) {
    let session = fixture.session().await;
    assert_eq!(find(&session, "Ben").await.unwrap(), format!("Ben of {}", session.id()));
    session.finish("Found.").await.unwrap();
    let events = fixture.listener.events_until("session.completed").await;
    let expected =
        ["calling_tool", "tool.invoked", "tool.completed success", "thinking", "session.completed"];
    assert_eq!(event_kinds(&events), expected);
    let invoked = find_event(&events, "tool.invoked");
    assert_eq!(invoked["summary_normal"], "Look for \"Ben\".");
    assert_eq!((&invoked["risk_level"], &invoked["irreversible"]), (&json!("medium"), &json!(false)));
    assert_eq!(events.last().unwrap()["tool_invocations_count"], 1);
}

pub(crate) async fn a_tool_error_is_reported_without_secrets(mut fixture: HubFixture) {
    let session = fixture.session().await;
    let call_log = CallLog::default();
    let call =
        within(&session, transfer(&call_log, "key sk-abcdefghij1234567890XYZ", "nobody".to_owned(), 5));
    let (failed, question) = tokio::join!(call, fixture.listener.decide_next("accept"));
    assert!(matches!(&failed, Err(CallError::Tool(message)) if message.contains("hunter2")), "{failed:?}");
    assert_eq!(question["action"], "Transfer 5 from key [redacted] to nobody.");
    session.fail("It failed.").await.unwrap();
    let events = fixture.listener.events_until("session.errored").await;
    assert_eq!(find_event(&events, "tool.invoked")["summary_normal"], question["action"]);
    let ended = find_event(&events, "tool.completed");
    assert_eq!(ended["status"], "error");
    assert_eq!(ended["error_message"], "nobody has no account, and password: [redacted] is wrong");
    assert_eq!(
        ended["summary_normal"],
        "Transfer failed: nobody has no account, and password: [redacted] is wrong"
    );
}

#[sayso::tool(
    timeout = "1ms",
    name = "slow_one",
    irreversible,
    action = "Wait.",
    consequence = "Time is lost."
)]
async fn slow() -> Result<(), String> {
    pending().await
}

pub(crate) async fn a_tool_that_times_out_is_dropped_and_reported(mut fixture: HubFixture) {
    let session = fixture.session().await;
    let (slow, _) = tokio::join!(within(&session, slow()), fixture.listener.decide_next("accept"));
    assert_eq!(slow, Err(CallError::TimedOut));
    session.finish("Done.").await.unwrap();
    let events = fixture.listener.events_until("session.completed").await;
    let ended = find_event(&events, "tool.completed");
    assert_eq!((&ended["tool"], &ended["status"]), (&json!("slow_one"), &json!("timeout")));
}

#[sayso::tool]
async fn breaks(message: &str) -> Result<(), String> {
    panic!("{message}");
}

#[sayso::tool]
async fn look_up_weather() -> Result<(), String> {
    Ok(())
}

pub(crate) async fn a_tool_without_texts_is_announced_by_its_name(mut fixture: HubFixture) {
    let session = fixture.session().await;
    assert_eq!(within(&session, look_up_weather()).await, Ok(()));
    session.finish("Done.").await.unwrap();
    let events = fixture.listener.events_until("session.completed").await;
    assert_eq!(find_event(&events, "tool.invoked")["summary_normal"], "Look up weather.");
    assert_eq!(find_event(&events, "tool.completed")["summary_normal"], "Look up weather has finished.");
    assert_eq!(find_event(&events, "tool.completed")["tool"], "look_up_weather");
}

pub(crate) async fn a_tool_panic_is_reported(mut fixture: HubFixture) {
    let session = fixture.session().await;
    let agent = tokio::spawn(async move {
        within(&session, breaks("on purpose")).await.unwrap();
        session
    });
    assert!(agent.await.unwrap_err().is_panic());
    let events = fixture.listener.events_until("session.errored").await;
    let expected = ["calling_tool", "tool.invoked", "tool.completed timeout", "thinking", "session.errored"];
    assert_eq!(event_kinds(&events), expected);
    assert_eq!(find_event(&events, "tool.invoked")["summary_normal"], "Breaks.");
    assert_eq!(events.last().unwrap()["error_code"], "AGENT_PANICKED");
}

pub(crate) async fn concurrent_tools_get_their_own_answers(mut fixture: HubFixture) {
    let session = fixture.session().await;
    let call_log = CallLog::default();
    let both = within(&session, async {
        tokio::join!(
            transfer(&call_log, "checking", "Ben".to_owned(), 1),
            transfer(&call_log, "checking", "Eve".to_owned(), 2),
        )
    });
    let answering = async {
        let mut questions = Vec::new();
        while questions.len() < 2 {
            questions.extend(fixture.listener.events_until("awaiting.confirmation").await.pop());
        }
        let ben = questions
            .iter()
            .position(|question| question["action"].as_str().unwrap().contains("Ben"))
            .unwrap();
        fixture.listener.decide(&questions[ben], "accept").await;
        // One call continues while the other waits.
        let kinds = event_kinds(&fixture.listener.events_until("tool.completed").await);
        assert_eq!(kinds.last().unwrap(), "tool.completed success");
        fixture.listener.decide(&questions[1 - ben], "reject").await;
    };
    let ((ben, eve), ()) = tokio::join!(both, answering);
    assert_eq!(ben, Ok(4711));
    assert!(matches!(eve, Err(CallError::Refused(_))), "{eve:?}");
    assert_eq!(logged_calls(&call_log), ["checking Ben 1"]);
    session.finish("Done.").await.unwrap();
    fixture.listener.events_until("session.completed").await;
}

#[sayso::tool(action = "Settle all that {creditor} is owed.", skip(log))]
async fn settle(creditor: String, log: &CallLog) -> Result<u64, Box<dyn std::error::Error>> {
    // The macro reads `creditor` for the announcement before the body takes ownership of it.
    Ok(transfer(log, "checking", creditor, 7).await?)
}

pub(crate) async fn a_tool_can_call_another_tool(mut fixture: HubFixture) {
    let session = fixture.session().await;
    let call_log = CallLog::default();
    let (settled, _) = tokio::join!(
        within(&session, settle("Ben".to_owned(), &call_log)),
        fixture.listener.decide_next("accept")
    );
    assert_eq!(settled.unwrap(), 4711);
    session.finish("Done.").await.unwrap();
    let events = fixture.listener.events_until("session.completed").await;
    let ended: Vec<_> = events
        .iter()
        .filter(|event| event["status"] == "success")
        .map(|event| event["tool"].clone())
        .collect();
    assert_eq!(ended, ["transfer", "settle"]);
    assert_eq!(events.last().unwrap()["tool_invocations_count"], 2);
}

pub(crate) async fn a_tool_fails_if_its_inner_tool_is_refused(mut fixture: HubFixture) {
    let session = fixture.session().await;
    let call_log = CallLog::default();
    let (settled, _) = tokio::join!(
        within(&session, settle("Ben".to_owned(), &call_log)),
        fixture.listener.decide_next("reject")
    );
    assert_eq!(settled.unwrap_err().to_string(), "the person refused");
    assert!(logged_calls(&call_log).is_empty());
    session.think("Going on.").await.unwrap();
    session.finish("Done.").await.unwrap();
    let events = fixture.listener.events_until("session.completed").await;
    let ended = find_event(&events, "tool.completed");
    assert_eq!((&ended["tool"], &ended["error_message"]), (&json!("settle"), &json!("the person refused")));
    let expected = ["calling_tool", "tool.completed error", "thinking", "thinking", "session.completed"];
    assert_eq!(event_kinds(&events), expected);
}

#[sayso::tool(action = "Say {what}.", skip(listener))]
async fn wait_for_announcement(listener: &mut TestListener, what: &str) -> Result<Vec<Value>, String> {
    Ok(listener.events_until("tool.invoked").await)
}

pub(crate) async fn a_tool_is_announced_before_it_runs(mut fixture: HubFixture) {
    let session = fixture.session().await;
    let events = within(&session, wait_for_announcement(&mut fixture.listener, "this")).await.unwrap();
    assert_eq!(events.last().unwrap()["summary_normal"], "Say this.");
    // A tool that cannot be announced does not run. If it ran, it would wait forever.
    let refused =
        within(&session, wait_for_announcement(&mut fixture.listener, &"this ".repeat(10_000))).await;
    assert!(matches!(refused, Err(CallError::Session(Error::RuleViolations(_)))), "{refused:?}");
    session.finish("Done.").await.unwrap();
}

/// A function with generics, lifetimes, raw identifiers and `impl Trait` arguments.
#[sayso::tool(irreversible, action = "{{{session}}} {name:?} {type}", consequence = "{many:?}")]
pub(crate) async fn shapes<'a, T, const N: usize>(
    session: u8,
    name: &'a T,
    r#type: impl Argument + std::fmt::Display,
    many: &[u8; N],
) -> Result<Box<dyn std::fmt::Display + 'a>, Box<dyn std::error::Error>>
where
    T: Argument + std::fmt::Debug + std::fmt::Display,
{
    if session == 0 {
        return Err("nothing".into());
    }
    let parsed_len = many.len().to_string().parse::<usize>()?;
    assert_eq!(parsed_len, N);
    Ok(Box::new(format!("{name} {type}")))
}

pub(crate) async fn a_tool_may_have_any_signature(mut fixture: HubFixture) {
    let session = fixture.session().await;
    let name = "Ben".to_owned();
    let call = within(&session, shapes(7, &name, -1.5, &[1, 2]));
    let (returned, question) = tokio::join!(call, fixture.listener.decide_next("accept"));
    assert_eq!(returned.unwrap().to_string(), "Ben -1.5");
    assert_eq!(
        (&question["action"], &question["consequence"]),
        (&json!("{7} \"Ben\" -1.5"), &json!("[1, 2]"))
    );
    let action = r#"{"session":7,"name":"Ben","type":-1.5,"many":[1,2]}"#;
    let action = aaep::consent::BoundAction::new("shapes", action).unwrap();
    assert_eq!(question["extensions"]["sayso"]["action_digest"], action.digest().to_string());
    session.finish("Done.").await.unwrap();
}

/// Records when it is dropped.
struct DropRecorder(CallLog);

impl Drop for DropRecorder {
    fn drop(&mut self) {
        self.0.lock().unwrap().push("gone".to_owned());
    }
}

#[sayso::tool(irreversible, action = "Work on.", consequence = "It never ends.", skip(recorder))]
async fn works_on(recorder: DropRecorder) -> Result<(), String> {
    recorder.0.lock().unwrap().push("began".to_owned());
    pending().await
}

pub(crate) async fn a_stop_request_drops_the_body_of_a_tool(mut fixture: HubFixture) {
    let session = fixture.session().await;
    let call_log = CallLog::default();
    let call = within(&session, works_on(DropRecorder(call_log.clone())));
    let answering = async {
        fixture.listener.decide_next("accept").await;
        fixture.listener.events_until("tool.invoked").await;
        fixture.listener.stop_session(session.id()).await;
    };
    let (stopped, ()) = tokio::join!(call, answering);
    assert_eq!(stopped, Err(CallError::Session(Error::Stopped(StopReason::Person))));
    assert_eq!(logged_calls(&call_log), ["began", "gone"]);
}

pub(crate) async fn a_tool_dropped_while_its_question_is_open_never_runs(mut fixture: HubFixture) {
    // The answer can arrive before the tool is dropped. Then the accepted call is never announced.
    fixture.listener.ignore_rule("AAEP-4.5.3-2");
    let session = fixture.session().await;
    let call_log = CallLog::default();
    let question = tokio::select! {
        called = within(&session, transfer(&call_log, "checking", "Ben".to_owned(), 500)) => panic!("{called:?}"),
        events = fixture.listener.events_until("awaiting.confirmation") => events.last().unwrap().clone(),
    };
    fixture.listener.decide(&question, "accept").await;
    session.finish("Done.").await.unwrap();
    let kinds = event_kinds(&fixture.listener.events_until("session.completed").await);
    assert!(!kinds.contains(&"tool.invoked".to_owned()), "{kinds:?}");
    assert!(logged_calls(&call_log).is_empty());
}

#[sayso::tool(skip(recorder))]
async fn outlives(recorder: DropRecorder) -> Result<(), String> {
    recorder.0.lock().unwrap().push("began".to_owned());
    pending().await
}

pub(crate) async fn a_tool_that_outlives_its_session_is_dropped_with_an_error(mut fixture: HubFixture) {
    let session = fixture.session().await;
    let call_log = CallLog::default();
    let running = tokio::spawn(within(&session, outlives(DropRecorder(call_log.clone()))));
    fixture.listener.events_until("tool.invoked").await;
    // The listener may receive the event before the body of the tool starts.
    while logged_calls(&call_log).is_empty() {
        tokio::task::yield_now().await;
    }
    session.finish("Done.").await.unwrap();
    let ended = running.await.unwrap();
    assert!(matches!(ended, Err(CallError::Session(Error::Stopped(_)))), "{ended:?}");
    assert_eq!(logged_calls(&call_log), ["began", "gone"]);
    let kinds = event_kinds(&fixture.listener.events_until("session.completed").await);
    assert_eq!(kinds, ["tool.completed timeout", "session.completed"]);
}

struct Vault {
    call_log: CallLog,
}

struct Account(u16);

impl std::fmt::Display for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no. {}", self.0)
    }
}

impl Vault {
    #[sayso::tool(
        risk = "high",
        action = "Open {account}.",
        consequence = "It is open.",
        shown(account),
        confidential(pin),
        skip(self)
    )]
    async fn open(
        &self,
        account: Account,
        pin: &str,
        mut times: u8,
        memo: Option<&str>,
    ) -> Result<u8, String> {
        times += 1;
        self.call_log.lock().unwrap().push(format!("{account} {pin} {times} {memo:?}"));
        Ok(times)
    }
}

pub(crate) async fn all_arguments_except_confidential_ones_are_announced(mut fixture: HubFixture) {
    let session = fixture.session().await;
    let vault = Vault { call_log: CallLog::default() };
    let mut digests = Vec::new();
    for _ in 0..2 {
        let call = within(&session, vault.open(Account(7), "hunter2", 1, Some("for \"lunch\"")));
        let (opened, question) = tokio::join!(call, fixture.listener.decide_next("accept"));
        assert_eq!(opened, Ok(2));
        assert_eq!(question["action"], r#"Open no. 7. (times: 1, memo: "for \"lunch\"")"#);
        // The PIN has letters, so that no id or hash contains it by chance.
        assert!(!question.to_string().contains("hunter2"), "{question}");
        digests.push(question["extensions"]["sayso"]["action_digest"].clone());
    }
    assert_eq!(logged_calls(&vault.call_log), [r#"no. 7 hunter2 2 Some("for \"lunch\"")"#; 2]);
    // The digests differ, so that an attacker who knows all other arguments cannot find the PIN by trying.
    assert_ne!(digests[0], digests[1]);
    session.finish("Done.").await.unwrap();
}

pub(crate) async fn a_current_session_handle_becomes_invalid_when_its_owner_ends(mut fixture: HubFixture) {
    let session = fixture.session().await;
    let handle = within(&session, async { current().unwrap() }).await;
    handle.think("Still here.").await.unwrap();
    session.finish("Done.").await.unwrap();
    assert!(matches!(handle.think("And now?").await, Err(Error::Stopped(_))));
    drop(handle);
    // The session ends once, and the hub keeps working.
    let kinds = event_kinds(&fixture.listener.events_until("session.completed").await);
    assert_eq!(kinds, ["thinking", "session.completed"]);
    let next = fixture.session().await;
    let handle = within(&next, async { current().unwrap() }).await;
    drop(handle);
    next.finish("Done.").await.unwrap();
    assert_eq!(event_kinds(&fixture.listener.events_until("session.completed").await), ["session.completed"]);
}
