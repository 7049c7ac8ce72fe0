//! Agents on a line: they are told without asking, and count as there as long as the line is.

use crate::support::*;
use hub::command::{Command, Notice, Output, Reply, Request, RequestId};
use hub::{Limits, LineId, Principal};
use proptest::prelude::*;
use seal::UnixMillis;

const LINE: LineId = LineId(1);
const OTHER: LineId = LineId(2);

fn start_on(stage: &mut Stage, who: &Principal, line: LineId) -> String {
    let text = r#"{"summary_normal":"Moving money.","localization_hints":{"primary_language":"en"}}"#;
    let start = Command::Start { body: text.into(), key: None };
    let made = json(stage.on(who, line, start));
    text_of(&made, "session_id")
}

fn ask(session: &str, key: Option<&str>) -> Command {
    let key = key.map(str::to_owned);
    Command::Ask { session: id(session), body: TRANSFER.into(), clarify: false, key }
}

fn ask_on(stage: &mut Stage, who: &Principal, line: LineId, session: &str) -> String {
    let asked = json(stage.on(who, line, ask(session, None)));
    text_of(&asked, "reply_token")
}

fn follow(session: &str) -> Command {
    Command::Follow { session: id(session) }
}

fn stop(stage: &mut Stage, who: &Principal, subscription: &str, session: &str) {
    let at = aaep::Timestamp::from_unix_millis(stage.now).unwrap();
    let text = format!(
        r#"{{"type":"sayso:session.stop","session_id":"{session}","subscription_id":"{subscription}","timestamp":"{at}"}}"#
    );
    assert_eq!(stage.ask_hub(who, say(&text)), Reply::Done);
}

/// The token and what was decided, or the reason of an end.
fn in_short(notices: &[Notice]) -> Vec<(String, String)> {
    let short = |notice: &Notice| match notice {
        Notice::Resolved { token, outcome, .. } => {
            let outcome = json(Reply::QuestionResolved(outcome.clone()));
            (token.to_string(), format!("{} by {}", text_of(&outcome, "decision"), text_of(&outcome, "by")))
        }
        Notice::Stopped { reason, .. } => ("stopped".to_owned(), reason.to_string()),
        other => panic!("{other:?}"),
    };
    notices.iter().map(short).collect()
}

fn is_open(stage: &mut Stage, who: &Principal, session: &str) -> bool {
    // Not on a line it is a look and no sign of life.
    stage.ask_hub(who, follow(session)) != Reply::NotFound
}

#[test]
fn an_answer_is_told_on_every_line_that_follows() {
    let mut stage = Stage::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, _) = stage.listener(&ada, REPLIES);
    let session = start_on(&mut stage, &bank, LINE);
    assert!(matches!(stage.on(&bank, OTHER, follow(&session)), Reply::SessionFollowed { .. }));
    let token = ask_on(&mut stage, &bank, LINE, &session);
    assert_eq!(stage.notices(LINE), []);
    stage.reply(&ada, &subscription, &token, "accept");
    let Reply::QuestionResolved(outcome) = stage.status(&bank, &session, &token) else { panic!() };
    let resolved = Notice::Resolved { session: id(&session), token: id(&token), outcome };
    assert_eq!((stage.notices(LINE), stage.notices(OTHER)), (vec![resolved.clone()], vec![resolved]));
}

#[test]
fn what_was_asked_is_answered_before_anything_is_told_of_it() {
    let mut stage = Stage::new();
    let bank = agent("bank");
    let session = start_on(&mut stage, &bank, LINE);
    let command = Command::On { line: LINE, command: Box::new(ask(&session, None)) };
    let request = Request { id: RequestId(900), who: bank, command };
    let mut outputs = stage.core.turn(vec![request], stage.now);
    outputs.retain(|output| !matches!(output, Output::Note(_)));
    let [
        Output::Reply(RequestId(900), Reply::QuestionOpened { .. } | Reply::SessionStarted { .. }),
        Output::Notice(LINE, told),
    ] = &outputs[..]
    else {
        panic!("{outputs:?}");
    };
    assert_eq!(in_short(std::slice::from_ref(told))[0].1, "reject by unreachable");
}

#[test]
fn that_the_person_stopped_it_is_told_after_its_questions() {
    let mut stage = Stage::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, _) = stage.listener(&ada, REPLIES);
    let session = start_on(&mut stage, &bank, LINE);
    let token = ask_on(&mut stage, &bank, LINE, &session);
    stop(&mut stage, &ada, &subscription, &session);
    let told = in_short(&stage.notices(LINE));
    assert_eq!(told, [(token, "reject by stopped".into()), ("stopped".into(), "user".into())]);
    assert_eq!(stage.on(&bank, LINE, follow(&session)), Reply::NotFound);
    assert_eq!(
        in_short(&stage.notices(LINE)),
        [("stopped".into(), "user".into())],
        "whoever asks is told why"
    );
    assert!(format!("{:?}", stage.core).contains(" lines: 0,"), "{:?}", stage.core);
}

#[test]
fn the_person_stops_an_agent_in_the_middle_of_a_call_and_an_output() {
    let mut stage = Stage::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, ear) = stage.listener(&ada, REPLIES);
    let session = start_on(&mut stage, &bank, LINE);
    let tool = r#"{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":"call_9","risk_level":"low","summary_normal":"Looking."}"#;
    assert!(matches!(stage.publish(&bank, &session, &[THINK, tool]), Reply::EventsPublished { .. }));
    stage.heard(ear);
    stop(&mut stage, &ada, &subscription, &session);
    assert_eq!(types(&stage.heard(ear)), ["tool.completed", "session.cancelled"]);
    assert_eq!(in_short(&stage.notices(LINE)), [("stopped".into(), "user".into())]);
    assert!(!is_open(&mut stage, &bank, &session));
}

#[test]
fn who_ends_a_session_itself_is_not_told_and_others_are() {
    let mut stage = Stage::new();
    let bank = agent("bank");
    let session = start_on(&mut stage, &bank, LINE);
    stage.on(&bank, OTHER, follow(&session));
    let end = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#.to_owned();
    stage.on(&bank, LINE, Command::Publish { session: id(&session), events: vec![end.into()], key: None });
    assert_eq!(stage.notices(LINE), []);
    assert_eq!(in_short(&stage.notices(OTHER)), [("stopped".into(), "completed".into())]);
}

#[test]
fn a_line_keeps_its_sessions_alive_and_one_lease_longer() {
    let mut stage = Stage::new();
    let bank = agent("bank");
    let lease = Limits::default().lease;
    let [followed, left] = [LINE, OTHER].map(|line| start_on(&mut stage, &bank, line));
    stage.ask_hub_quietly(&bank, Command::HungUp { line: OTHER });
    stage.wait(lease * 3 + 17);
    assert!(is_open(&mut stage, &bank, &followed) && !is_open(&mut stage, &bank, &left));
    stage.ask_hub_quietly(&bank, Command::HungUp { line: LINE });
    stage.wait(lease - 1);
    assert!(is_open(&mut stage, &bank, &followed));
    stage.wait(1);
    assert!(!is_open(&mut stage, &bank, &followed));
    stage.on(&bank, LINE, follow(&followed));
    assert_eq!(in_short(&stage.notices(LINE)), [("stopped".into(), "gone".into())]);
}

#[test]
fn who_comes_back_is_told_what_was_resolved_meanwhile() {
    let mut stage = Stage::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, _) = stage.listener(&ada, REPLIES);
    let session = start_on(&mut stage, &bank, LINE);
    let token = ask_on(&mut stage, &bank, LINE, &session);
    stage.ask_hub_quietly(&bank, Command::HungUp { line: LINE });
    stage.reply(&ada, &subscription, &token, "accept");
    assert_eq!(stage.notices(LINE), []);
    for crash in [false, true] {
        if crash {
            stage.crash();
        }
        stage.on(&bank, OTHER, follow(&session));
        assert_eq!(in_short(&stage.notices(OTHER)), [(token.clone(), "accept by reply".into())]);
        stage.on(&bank, OTHER, follow(&session));
        assert_eq!(stage.notices(OTHER), [], "once on a line");
    }
    let publish =
        Command::Publish { session: id(&session), events: vec![call(&token, "500.00").into()], key: None };
    assert!(matches!(stage.on(&bank, OTHER, publish), Reply::EventsPublished { .. }));
    stage.on(&bank, LINE, follow(&session));
    assert_eq!(stage.notices(LINE), [], "it was acted on");
}

#[test]
fn who_asks_again_with_the_same_key_is_told_again_even_when_the_session_is_over() {
    let mut stage = Stage::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, _) = stage.listener(&ada, REPLIES);
    let session = start_on(&mut stage, &bank, LINE);
    let asked = json(stage.on(&bank, LINE, ask(&session, Some("k"))));
    let token = text_of(&asked, "reply_token");
    assert_eq!(json(stage.on(&bank, LINE, ask(&session, Some("k")))), asked);
    assert_eq!(stage.notices(LINE), [], "it is open");
    stage.reply(&ada, &subscription, &token, "accept");
    stage.notices(LINE);
    assert_eq!(json(stage.on(&bank, LINE, ask(&session, Some("k")))), asked);
    assert_eq!(in_short(&stage.notices(LINE)), [(token.clone(), "accept by reply".into())]);
    stop(&mut stage, &ada, &subscription, &session);
    stage.crash();
    assert_eq!(json(stage.on(&bank, LINE, ask(&session, Some("k")))), asked);
    let told = in_short(&stage.notices(LINE));
    assert_eq!(told, [("stopped".into(), "user".into()), (token, "accept by reply".into())]);
}

#[test]
fn what_is_resolved_in_the_turn_in_which_a_line_comes_is_told_once() {
    let mut stage = Stage::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, _) = stage.listener(&ada, REPLIES);
    let session = stage.start(&bank);
    let asked = json(stage.confirm(&bank, &session, TRANSFER));
    let token = text_of(&asked, "reply_token");
    let at = aaep::Timestamp::from_unix_millis(stage.now).unwrap();
    let text = format!(
        r#"{{"type":"confirmation.reply","reply_token":"{token}","decision":"accept","subscription_id":"{subscription}","timestamp":"{at}"}}"#
    );
    let coming = Command::On { line: LINE, command: Box::new(follow(&session)) };
    stage.both(&ada, say(&text), &bank, coming);
    assert_eq!(in_short(&stage.notices(LINE)), [(token, "accept by reply".into())]);
}

#[test]
fn a_turn_that_could_not_be_written_tells_nothing_and_the_line_goes_on() {
    let mut stage = Stage::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, _) = stage.listener(&ada, REPLIES);
    let session = start_on(&mut stage, &bank, LINE);
    let token = ask_on(&mut stage, &bank, LINE, &session);
    stage.disk.fill(true);
    let text = r#"{"summary_normal":"Another.","localization_hints":{"primary_language":"en"}}"#.to_owned();
    let start = Command::Start { body: text.into(), key: None };
    assert!(matches!(stage.on(&bank, LINE, start), Reply::Unavailable(_)));
    let at = aaep::Timestamp::from_unix_millis(stage.now).unwrap();
    let text = format!(
        r#"{{"type":"sayso:session.stop","session_id":"{session}","subscription_id":"{subscription}","timestamp":"{at}"}}"#
    );
    assert!(matches!(stage.ask_hub(&ada, say(&text)), Reply::Unavailable(_)));
    assert_eq!(stage.notices(LINE), []);
    stage.disk.fill(false);
    stage.attach(&ada, &subscription, None);
    stage.reply(&ada, &subscription, &token, "accept");
    assert_eq!(in_short(&stage.notices(LINE)), [(token, "accept by reply".into())]);
}

#[test]
fn a_line_that_ends_while_nothing_can_be_read_keeps_nothing_alive() {
    let mut stage = Stage::new();
    let bank = agent("bank");
    let session = start_on(&mut stage, &bank, LINE);
    stage.disk.fill(true);
    stage.disk.fail(true);
    assert!(matches!(stage.publish(&bank, &session, &[THINK]), Reply::Unavailable(_)));
    stage.ask_hub_quietly(&bank, Command::HungUp { line: LINE });
    stage.disk.fill(false);
    stage.disk.fail(false);
    stage.wait(2_000);
    stage.wait(Limits::default().lease);
    assert!(!is_open(&mut stage, &bank, &session));
}

#[test]
fn somebody_elses_session_is_no_session_on_a_line_either() {
    let mut stage = Stage::new();
    let (bank, post) = (agent("bank"), agent("post"));
    let twin = Principal { name: "twin".into(), ..agent("bank") };
    let open = start_on(&mut stage, &bank, LINE);
    let over = start_on(&mut stage, &bank, LINE);
    let end = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
    stage.publish(&bank, &over, &[end]);
    for who in [&post, &twin] {
        for session in [&*open, &*over, "sess_00000000000000000000000000000000"] {
            assert_eq!(stage.on(who, OTHER, follow(session)), Reply::NotFound);
            assert_eq!(stage.on(who, OTHER, ask(session, Some("k"))), Reply::NotFound);
        }
    }
    assert_eq!(stage.notices(OTHER), []);
    assert_eq!(stage.on(&listener("ada", &[]), OTHER, follow(&open)), Reply::NotFound);
}

#[test]
fn so_many_follow_a_session_and_no_more() {
    let limits = Limits { followers: 2, ..Limits::default() };
    let mut stage = Stage::with(&limits, Disk::default(), START);
    let bank = agent("bank");
    let session = start_on(&mut stage, &bank, LINE);
    assert!(matches!(stage.on(&bank, OTHER, follow(&session)), Reply::SessionFollowed { .. }));
    assert!(matches!(stage.on(&bank, LineId(3), follow(&session)), Reply::LimitReached(_)));
    assert!(
        matches!(stage.on(&bank, OTHER, follow(&session)), Reply::SessionFollowed { .. }),
        "it is one of them"
    );
    stage.ask_hub_quietly(&bank, Command::HungUp { line: LINE });
    assert!(matches!(stage.on(&bank, LineId(3), follow(&session)), Reply::SessionFollowed { .. }));
}

#[test]
fn a_wait_that_nobody_waits_for_is_forgotten_and_makes_room() {
    let limits = Limits { waits_of_principal: 2, ..Limits::default() };
    let mut stage = Stage::with(&limits, Disk::default(), START);
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, _) = stage.listener(&ada, REPLIES);
    let session = stage.start(&bank);
    let asked = json(stage.confirm(&bank, &session, TRANSFER));
    let token = text_of(&asked, "reply_token");
    let wait = |until| Command::Wait { session: id(&session), token: id(&token), until };
    let until = stage.now + 60_000;
    let first = stage.send(&bank, wait(until));
    let second = stage.send(&bank, wait(until));
    assert!(matches!(stage.ask_hub(&bank, wait(until)), Reply::LimitReached(_)));
    assert!(
        matches!(
            stage.ask_hub(&bank, wait(UnixMillis::new(0))),
            Reply::QuestionPending | Reply::QuestionResolved(_)
        ),
        "a look is no wait"
    );
    stage.ask_hub_quietly(&bank, Command::Forget { request: first });
    let third = stage.send(&bank, wait(UnixMillis::MAX));
    stage.reply(&ada, &subscription, &token, "reject");
    assert_eq!(stage.answer(first), None);
    for waiting in [second, third] {
        assert!(matches!(stage.answer(waiting), Some(Reply::QuestionPending | Reply::QuestionResolved(_))));
    }
}

#[test]
fn no_wait_is_longer_than_the_longest_and_its_lease_with_it() {
    let mut stage = Stage::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    stage.listener(&ada, REPLIES);
    let session = stage.start(&bank);
    let long = TRANSFER.replace(r#""timeout_seconds":180"#, r#""timeout_seconds":3600"#);
    let asked = json(stage.confirm(&bank, &session, &long));
    let token = text_of(&asked, "reply_token");
    let waiting =
        stage.send(&bank, Command::Wait { session: id(&session), token: id(&token), until: UnixMillis::MAX });
    stage.wait(Limits::default().longest_wait - 1);
    assert_eq!(stage.answer(waiting), None);
    stage.wait(1);
    assert_eq!(stage.answer(waiting), Some(Reply::QuestionPending));
    assert!(is_open(&mut stage, &bank, &session), "it may ask again");
    stage.wait(1_000);
    assert!(!is_open(&mut stage, &bank, &session));
}

#[test]
fn of_a_session_that_is_over_its_own_agent_alone_is_told() {
    let mut stage = Stage::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let twin = Principal { name: "twin".into(), ..agent("bank") };
    let (subscription, _) = stage.listener(&ada, REPLIES);
    let session = stage.start(&bank);
    let asked = json(stage.confirm(&bank, &session, TRANSFER));
    let token = text_of(&asked, "reply_token");
    stage.reply(&ada, &subscription, &token, "accept");
    stop(&mut stage, &ada, &subscription, &session);
    for crash in [false, true] {
        if crash {
            stage.crash();
        }
        assert!(matches!(
            stage.status(&bank, &session, &token),
            Reply::QuestionPending | Reply::QuestionResolved(_)
        ));
        assert_eq!(stage.status(&twin, &session, &token), Reply::NotFound, "the same agent_id is not enough");
        assert_eq!(stage.status(&Principal::anybody(), &session, &token), Reply::NotFound);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Pass(i64),
    Say(usize),
    Follow(u64, usize),
    HangUp(u64),
    Look(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..200_i64).prop_map(Step::Pass),
        2 => (0..5_usize).prop_map(Step::Say),
        2 => (0..3_u64, 0..5_usize).prop_map(|(line, session)| Step::Follow(line, session)),
        2 => (0..3_u64).prop_map(Step::HangUp),
        1 => (0..5_usize).prop_map(Step::Look),
    ];
    prop::collection::vec(step, 1..60)
}

/// A session as a scan over all of them would see it.
struct Plain {
    id: String,
    sign: i64,
    lines: Vec<u64>,
    open: bool,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn leases_end_when_a_scan_would_end_them(steps in steps()) {
        const LEASE: i64 = 100;
        let limits = Limits { lease: LEASE, ..Limits::default() };
        let mut stage = Stage::with(&limits, Disk::default(), START);
        let bank = agent("bank");
        let mut plain: Vec<_> = (0..5)
            .map(|_| Plain { id: stage.start(&bank), sign: stage.now.get(), lines: Vec::new(), open: true })
            .collect();
        for step in steps {
            match step {
                Step::Pass(time) => stage.wait(time),
                Step::Say(which) => {
                    let said = stage.publish(&bank, &plain[which].id, &[r#"{"type":"aaep:agent.state.changed"}"#]);
                    prop_assert_eq!(said != Reply::NotFound, plain[which].open);
                    plain[which].sign = stage.now.get();
                }
                Step::Follow(line, which) => {
                    let told = stage.on(&bank, LineId(line), follow(&plain[which].id));
                    prop_assert_eq!(told != Reply::NotFound, plain[which].open);
                    plain[which].sign = stage.now.get();
                    if !plain[which].lines.contains(&line) {
                        plain[which].lines.push(line);
                    }
                }
                Step::HangUp(line) => {
                    stage.ask_hub_quietly(&bank, Command::HungUp { line: LineId(line) });
                    for one in plain.iter_mut().filter(|one| one.lines.contains(&line)) {
                        one.lines.retain(|it| *it != line);
                        one.sign = stage.now.get();
                    }
                }
                Step::Look(which) => {
                    prop_assert_eq!(is_open(&mut stage, &bank, &plain[which].id), plain[which].open);
                }
            }
            for one in &mut plain {
                one.open &= !one.lines.is_empty() || stage.now < UnixMillis::new(one.sign + LEASE);
            }
            let due = plain.iter().filter(|one| one.open && one.lines.is_empty()).map(|one| one.sign + LEASE).min();
            let next = stage.core.next_deadline();
            prop_assert!(due.is_none_or(|due| next.is_some_and(|next| next <= UnixMillis::new(due))), "{:?} after {:?}", next, due);
            for one in &plain {
                prop_assert_eq!(is_open(&mut stage, &bank, &one.id), one.open);
            }
        }
    }
}
