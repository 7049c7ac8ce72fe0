//! What an author of functions with `#[sayso::tool]` can rely on.

use std::future::pending;
use std::sync::{Arc, Mutex};

use sayso::{Argument, By, CallError, Error, Session, Stop, current, within};
use serde_json::{Value, json};

use crate::support::stage::{Person, Stage, told};

/// What was done.
type Done = Arc<Mutex<Vec<String>>>;

fn done(done: &Done) -> Vec<String> {
    done.lock().unwrap().clone()
}

#[sayso::tool(
    risk = "high",
    irreversible,
    action = "Transfer {amount} from {from} to {to}.",
    consequence = "The {amount} are gone at once.",
    done = "{amount} are with {to}.",
    skip(done)
)]
async fn transfer(done: &Done, from: &str, to: String, amount: u32) -> Result<u64, String> {
    if to == "nobody" {
        return Err("nobody has no account, and password: hunter2 is wrong".to_owned());
    }
    let mut done = done.lock().map_err(|error| error.to_string())?;
    done.push(format!("{from} {to} {amount}"));
    Ok(4711)
}

#[sayso::tool(action = "Look for {who:?}.", risk = "medium", within = "10m")]
async fn find(session: &Session, who: &str) -> std::io::Result<String> {
    assert_eq!(current().map(|current| current.id().to_owned()).as_deref(), Some(session.id()));
    Ok(format!("{who} of {}", session.id()))
}

pub(crate) async fn a_tool_asks_announces_runs_and_reports(mut stage: Stage) {
    let session = stage.session().await;
    let made = Done::default();
    let call = within(&session, transfer(&made, "checking", "Ben".to_owned(), 500));
    let person = async {
        let heard = stage.person.hears_until("awaiting.confirmation").await;
        assert!(done(&made).is_empty());
        stage.person.answers(heard.last().unwrap(), "accept").await;
        heard
    };
    let (receipt, before) = tokio::join!(call, person);
    assert_eq!(receipt, Ok(4711));
    assert_eq!(done(&made), ["checking Ben 500"]);
    session.finish("Done.").await.unwrap();
    let after = stage.person.hears_until("session.completed").await;
    assert_eq!(told(&before).last().unwrap(), "awaiting.confirmation");
    assert!(!told(&before).contains(&"tool.invoked".to_owned()));
    let expected = [
        "thinking",
        "calling_tool",
        "tool.invoked",
        "tool.completed success",
        "thinking",
        "session.completed",
    ];
    assert_eq!(told(&after), expected);
    let asked = before.last().unwrap();
    assert_eq!(asked["action"], "Transfer 500 from checking to Ben.");
    assert_eq!(asked["consequence"], "The 500 are gone at once.");
    assert_eq!((&asked["risk_level"], &asked["irreversible"]), (&json!("high"), &json!(true)));
    let invoked = of(&after, "tool.invoked");
    assert_eq!((&invoked["tool"], &invoked["summary_normal"]), (&json!("transfer"), &asked["action"]));
    assert_eq!(of(&after, "tool.completed")["summary_normal"], "500 are with Ben.");
    // The answer is bound to these values, and the skipped one is no part of them.
    let action = r#"{"from":"checking","to":"Ben","amount":500}"#;
    let action = aaep::consent::Action::new("transfer", action).unwrap();
    assert_eq!(asked["extensions"]["sayso"]["action_digest"], action.digest().to_string());
}

fn of<'e>(heard: &'e [Value], kind: &str) -> &'e Value {
    heard.iter().find(|event| event["type"] == format!("aaep:agent.{kind}")).unwrap()
}

pub(crate) async fn a_refused_tool_never_runs(mut stage: Stage) {
    let session = stage.session().await;
    let made = Done::default();
    let call = within(&session, transfer(&made, "checking", "Ben".to_owned(), 500));
    let (refused, _) = tokio::join!(call, stage.person.decides("reject"));
    match refused {
        Err(CallError::Refused(why)) => assert_eq!(why.by, By::Reply),
        other => panic!("{other:?}"),
    }
    assert!(done(&made).is_empty());
    session.cancel("Nothing was paid.").await.unwrap();
    let heard = told(&stage.person.hears_until("session.cancelled").await);
    assert!(!heard.contains(&"tool.invoked".to_owned()), "{heard:?}");
}

pub(crate) async fn a_tool_without_a_session_does_nothing(_stage: Stage) {
    let made = Done::default();
    let lost = transfer(&made, "checking", "Ben".to_owned(), 500).await;
    assert_eq!(lost, Err(CallError::Session(Error::NoSession)));
    assert!(done(&made).is_empty());
    // A task of its own is carried nothing.
    assert!(tokio::spawn(async { current().is_none() }).await.unwrap());
}

pub(crate) async fn a_tool_of_no_great_risk_is_only_announced(mut stage: Stage) {
    let session = stage.session().await;
    assert_eq!(find(&session, "Ben").await.unwrap(), format!("Ben of {}", session.id()));
    session.finish("Found.").await.unwrap();
    let heard = stage.person.hears_until("session.completed").await;
    let expected =
        ["calling_tool", "tool.invoked", "tool.completed success", "thinking", "session.completed"];
    assert_eq!(told(&heard), expected);
    let invoked = of(&heard, "tool.invoked");
    assert_eq!(invoked["summary_normal"], "Look for \"Ben\".");
    assert_eq!((&invoked["risk_level"], &invoked["irreversible"]), (&json!("medium"), &json!(false)));
    assert_eq!(heard.last().unwrap()["tool_invocations_count"], 1);
}

pub(crate) async fn a_tools_error_is_told_without_secrets(mut stage: Stage) {
    let session = stage.session().await;
    let made = Done::default();
    let call = within(&session, transfer(&made, "key sk-abcdefghij1234567890XYZ", "nobody".to_owned(), 5));
    let (failed, asked) = tokio::join!(call, stage.person.decides("accept"));
    assert!(matches!(&failed, Err(CallError::Tool(why)) if why.contains("hunter2")), "{failed:?}");
    assert_eq!(asked["action"], "Transfer 5 from key [redacted] to nobody.");
    session.fail("It failed.").await.unwrap();
    let heard = stage.person.hears_until("session.errored").await;
    assert_eq!(of(&heard, "tool.invoked")["summary_normal"], asked["action"]);
    let ended = of(&heard, "tool.completed");
    assert_eq!(ended["status"], "error");
    assert_eq!(ended["error_message"], "nobody has no account, and password: [redacted] is wrong");
    assert_eq!(
        ended["summary_normal"],
        "Transfer failed: nobody has no account, and password: [redacted] is wrong"
    );
}

#[sayso::tool(
    within = "1ms",
    name = "slow_one",
    irreversible,
    action = "Wait.",
    consequence = "Time is lost."
)]
async fn slow() -> Result<(), String> {
    pending().await
}

pub(crate) async fn a_slow_tool_is_dropped_and_told(mut stage: Stage) {
    let session = stage.session().await;
    let (slow, _) = tokio::join!(within(&session, slow()), stage.person.decides("accept"));
    assert_eq!(slow, Err(CallError::TimedOut));
    session.finish("Done.").await.unwrap();
    let heard = stage.person.hears_until("session.completed").await;
    let ended = of(&heard, "tool.completed");
    assert_eq!((&ended["tool"], &ended["status"]), (&json!("slow_one"), &json!("timeout")));
}

#[sayso::tool]
async fn breaks(how: &str) -> Result<(), String> {
    panic!("{how}");
}

#[sayso::tool]
async fn look_up_weather() -> Result<(), String> {
    Ok(())
}

pub(crate) async fn a_tool_without_words_is_said_as_its_name_in_words(mut stage: Stage) {
    let session = stage.session().await;
    assert_eq!(within(&session, look_up_weather()).await, Ok(()));
    session.finish("Done.").await.unwrap();
    let heard = stage.person.hears_until("session.completed").await;
    assert_eq!(of(&heard, "tool.invoked")["summary_normal"], "Look up weather.");
    assert_eq!(of(&heard, "tool.completed")["summary_normal"], "Look up weather is done.");
    assert_eq!(of(&heard, "tool.completed")["tool"], "look_up_weather");
}

pub(crate) async fn a_tools_panic_is_told(mut stage: Stage) {
    let session = stage.session().await;
    let agent = tokio::spawn(async move {
        within(&session, breaks("on purpose")).await.unwrap();
        session
    });
    assert!(agent.await.unwrap_err().is_panic());
    let heard = stage.person.hears_until("session.errored").await;
    let expected = ["calling_tool", "tool.invoked", "tool.completed error", "thinking", "session.errored"];
    assert_eq!(told(&heard), expected);
    assert_eq!(of(&heard, "tool.invoked")["summary_normal"], "Breaks.");
    assert_eq!(heard.last().unwrap()["error_code"], "AGENT_PANICKED");
}

pub(crate) async fn two_tools_are_asked_for_at_once_and_answered_each(mut stage: Stage) {
    let session = stage.session().await;
    let made = Done::default();
    let both = within(&session, async {
        tokio::join!(
            transfer(&made, "checking", "Ben".to_owned(), 1),
            transfer(&made, "checking", "Eve".to_owned(), 2),
        )
    });
    let person = async {
        let mut asked = Vec::new();
        while asked.len() < 2 {
            asked.extend(stage.person.hears_until("awaiting.confirmation").await.pop());
        }
        let ben = asked.iter().position(|asked| asked["action"].as_str().unwrap().contains("Ben")).unwrap();
        stage.person.answers(&asked[ben], "accept").await;
        // One goes on while the other waits.
        let heard = told(&stage.person.hears_until("tool.completed").await);
        assert_eq!(heard.last().unwrap(), "tool.completed success");
        stage.person.answers(&asked[1 - ben], "reject").await;
    };
    let ((ben, eve), ()) = tokio::join!(both, person);
    assert_eq!(ben, Ok(4711));
    assert!(matches!(eve, Err(CallError::Refused(_))), "{eve:?}");
    assert_eq!(done(&made), ["checking Ben 1"]);
    session.finish("Done.").await.unwrap();
    stage.person.hears_until("session.completed").await;
}

#[sayso::tool(action = "Settle all that {who} is owed.", skip(done))]
async fn settle(who: String, done: &Done) -> Result<u64, Box<dyn std::error::Error>> {
    // `who` is said before, and is the body's own after.
    Ok(transfer(done, "checking", who, 7).await?)
}

pub(crate) async fn a_tool_calls_a_tool(mut stage: Stage) {
    let session = stage.session().await;
    let made = Done::default();
    let (settled, _) =
        tokio::join!(within(&session, settle("Ben".to_owned(), &made)), stage.person.decides("accept"));
    assert_eq!(settled.unwrap(), 4711);
    session.finish("Done.").await.unwrap();
    let heard = stage.person.hears_until("session.completed").await;
    let ended: Vec<_> = heard
        .iter()
        .filter(|event| event["status"] == "success")
        .map(|event| event["tool"].clone())
        .collect();
    assert_eq!(ended, ["transfer", "settle"]);
    assert_eq!(heard.last().unwrap()["tool_invocations_count"], 2);
}

pub(crate) async fn a_tool_whose_tool_is_refused_fails(mut stage: Stage) {
    let session = stage.session().await;
    let made = Done::default();
    let (settled, _) =
        tokio::join!(within(&session, settle("Ben".to_owned(), &made)), stage.person.decides("reject"));
    assert_eq!(settled.unwrap_err().to_string(), "the person refused");
    assert!(done(&made).is_empty());
    session.think("Going on.").await.unwrap();
    session.finish("Done.").await.unwrap();
    let heard = stage.person.hears_until("session.completed").await;
    let ended = of(&heard, "tool.completed");
    assert_eq!((&ended["tool"], &ended["error_message"]), (&json!("settle"), &json!("the person refused")));
    let expected = ["calling_tool", "tool.completed error", "thinking", "thinking", "session.completed"];
    assert_eq!(told(&heard), expected);
}

#[sayso::tool(action = "Say {what}.", skip(person))]
async fn listens(person: &mut Person, what: &str) -> Result<Vec<Value>, String> {
    Ok(person.hears_until("tool.invoked").await)
}

pub(crate) async fn a_tool_is_announced_before_it_runs(mut stage: Stage) {
    let session = stage.session().await;
    let heard = within(&session, listens(&mut stage.person, "this")).await.unwrap();
    assert_eq!(heard.last().unwrap()["summary_normal"], "Say this.");
    // What cannot be announced does not run: here it would wait in vain.
    let unsaid = within(&session, listens(&mut stage.person, &"this ".repeat(10_000))).await;
    assert!(matches!(unsaid, Err(CallError::Session(Error::Unlawful(_)))), "{unsaid:?}");
    session.finish("Done.").await.unwrap();
}

/// All that a function can be.
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
    let returned = many.len().to_string().parse::<usize>()?;
    assert_eq!(returned, N);
    Ok(Box::new(format!("{name} {type}")))
}

pub(crate) async fn a_tool_may_have_any_shape(mut stage: Stage) {
    let session = stage.session().await;
    let name = "Ben".to_owned();
    let call = within(&session, shapes(7, &name, -1.5, &[1, 2]));
    let (shown, asked) = tokio::join!(call, stage.person.decides("accept"));
    assert_eq!(shown.unwrap().to_string(), "Ben -1.5");
    assert_eq!((&asked["action"], &asked["consequence"]), (&json!("{7} \"Ben\" -1.5"), &json!("[1, 2]")));
    let action = r#"{"session":7,"name":"Ben","type":-1.5,"many":[1,2]}"#;
    let action = aaep::consent::Action::new("shapes", action).unwrap();
    assert_eq!(asked["extensions"]["sayso"]["action_digest"], action.digest().to_string());
    session.finish("Done.").await.unwrap();
}

/// Notes when it goes.
struct Going(Done);

impl Drop for Going {
    fn drop(&mut self) {
        self.0.lock().unwrap().push("gone".to_owned());
    }
}

#[sayso::tool(irreversible, action = "Work on.", consequence = "It never ends.", skip(going))]
async fn works_on(going: Going) -> Result<(), String> {
    going.0.lock().unwrap().push("began".to_owned());
    pending().await
}

pub(crate) async fn the_persons_stop_drops_a_tools_body(mut stage: Stage) {
    let session = stage.session().await;
    let made = Done::default();
    let call = within(&session, works_on(Going(made.clone())));
    let person = async {
        stage.person.decides("accept").await;
        stage.person.hears_until("tool.invoked").await;
        stage.person.stops(session.id()).await;
    };
    let (stopped, ()) = tokio::join!(call, person);
    assert_eq!(stopped, Err(CallError::Session(Error::Stopped(Stop::Person))));
    assert_eq!(done(&made), ["began", "gone"]);
}

pub(crate) async fn a_tool_that_is_dropped_while_it_asks_never_runs(mut stage: Stage) {
    let session = stage.session().await;
    let made = Done::default();
    let asked = tokio::select! {
        called = within(&session, transfer(&made, "checking", "Ben".to_owned(), 500)) => panic!("{called:?}"),
        asked = stage.person.hears_until("awaiting.confirmation") => asked.last().unwrap().clone(),
    };
    stage.person.answers(&asked, "accept").await;
    session.finish("Done.").await.unwrap();
    let heard = told(&stage.person.hears_until("session.completed").await);
    assert!(!heard.contains(&"tool.invoked".to_owned()), "{heard:?}");
    assert!(done(&made).is_empty());
}

#[sayso::tool(skip(going))]
async fn outlives(going: Going) -> Result<(), String> {
    going.0.lock().unwrap().push("began".to_owned());
    pending().await
}

pub(crate) async fn a_tool_that_outlives_its_session_is_dropped_and_told_so(mut stage: Stage) {
    let session = stage.session().await;
    let made = Done::default();
    let beside = tokio::spawn(within(&session, outlives(Going(made.clone()))));
    stage.person.hears_until("tool.invoked").await;
    // It is heard before its agent knows that it was said.
    while done(&made).is_empty() {
        tokio::task::yield_now().await;
    }
    session.finish("Done.").await.unwrap();
    let ended = beside.await.unwrap();
    assert!(matches!(ended, Err(CallError::Session(Error::Stopped(_)))), "{ended:?}");
    assert_eq!(done(&made), ["began", "gone"]);
    let heard = told(&stage.person.hears_until("session.completed").await);
    assert_eq!(heard, ["tool.completed error", "session.completed"]);
}

struct Vault {
    made: Done,
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
        self.made.lock().unwrap().push(format!("{account} {pin} {times} {memo:?}"));
        Ok(times)
    }
}

pub(crate) async fn all_arguments_are_heard_but_the_confidential(mut stage: Stage) {
    let session = stage.session().await;
    let vault = Vault { made: Done::default() };
    let mut digests = Vec::new();
    for _ in 0..2 {
        let call = within(&session, vault.open(Account(7), "hunter2", 1, Some("for \"lunch\"")));
        let (opened, asked) = tokio::join!(call, stage.person.decides("accept"));
        assert_eq!(opened, Ok(2));
        assert_eq!(asked["action"], r#"Open no. 7. (times: 1, memo: "for \"lunch\"")"#);
        // Nothing that could stand in an id or a hash by chance.
        assert!(!asked.to_string().contains("hunter2"), "{asked}");
        digests.push(asked["extensions"]["sayso"]["action_digest"].clone());
    }
    assert_eq!(done(&vault.made), [r#"no. 7 hunter2 2 Some("for \"lunch\"")"#; 2]);
    // Whoever knows all but the PIN cannot find it by trying: no two digests are the same.
    assert_ne!(digests[0], digests[1]);
    session.finish("Done.").await.unwrap();
}

pub(crate) async fn a_session_that_is_carried_along_ends_with_its_owner(mut stage: Stage) {
    let session = stage.session().await;
    let kept = within(&session, async { current().unwrap() }).await;
    kept.think("Still here.").await.unwrap();
    session.finish("Done.").await.unwrap();
    assert!(matches!(kept.think("And now?").await, Err(Error::Stopped(_))));
    drop(kept);
    // One end, and the hub goes on.
    let heard = told(&stage.person.hears_until("session.completed").await);
    assert_eq!(heard, ["thinking", "session.completed"]);
    let next = stage.session().await;
    let handle = within(&next, async { current().unwrap() }).await;
    drop(handle);
    next.finish("Done.").await.unwrap();
    assert_eq!(told(&stage.person.hears_until("session.completed").await), ["session.completed"]);
}
