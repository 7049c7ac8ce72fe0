//! Tests of the core with a clock of their own.

use super::*;
use crate::mcp::trust::ServerTrust;

struct Fixture {
    core: GateCore,
    now: Instant,
}

impl Fixture {
    fn new() -> Self {
        let trust = ServerTrust { allow: vec!["read".to_owned()], ..ServerTrust::default() };
        let core = GateCore::new("files".to_owned(), Tools::new(trust, Some(HashMap::new())), false);
        let mut fixture = Self { core, now: Instant::now() };
        fixture.host(r#"{"jsonrpc":"2.0","id":"list","method":"tools/list"}"#);
        fixture
            .server(r#"{"jsonrpc":"2.0","id":"list","result":{"tools":[{"name":"read"},{"name":"write"}]}}"#);
        fixture
    }

    fn host(&mut self, line: &str) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.core.handle_host_line(format!("{line}\n").into_bytes(), self.now, &mut effects);
        effects
    }

    fn server(&mut self, line: &str) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.core.handle_server_line(format!("{line}\n").into_bytes(), self.now, &mut effects);
        effects
    }

    fn call(&mut self, id: usize, argument: usize) -> Vec<Effect> {
        self.host(&call_line(id, "write", &format!(r#"{{"n":{argument}}}"#), ""))
    }

    fn cancel(&mut self, id: usize) -> Vec<Effect> {
        self.host(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        ))
    }

    fn yes(&mut self, question: QuestionId) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.core.handle_answer(question, QuestionOutcome::Granted, self.now, &mut effects);
        effects
    }

    fn spent(&mut self, question: QuestionId, call: CallNumber) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.core.handle_spent(question, call, Ok(()), &mut effects);
        effects
    }
}

fn call_line(id: usize, tool: &str, arguments: &str, more: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}{more}}}}}"#
    )
}

fn asked(effects: &[Effect]) -> Option<QuestionId> {
    effects.iter().find_map(|effect| match effect {
        Effect::Ask(question, _) => Some(*question),
        _ => None,
    })
}

fn spends(effects: &[Effect]) -> Option<(QuestionId, CallNumber, bool)> {
    effects.iter().find_map(|effect| match effect {
        Effect::Spend { question, call, is_late } => Some((*question, *call, *is_late)),
        _ => None,
    })
}

fn to_server(effects: &[Effect]) -> Vec<&str> {
    let lines = effects.iter().filter_map(|effect| match effect {
        Effect::ToServer(line) => Some(std::str::from_utf8(line).unwrap()),
        _ => None,
    });
    lines.collect()
}

fn to_host(effects: &[Effect]) -> Vec<&str> {
    let lines = effects.iter().filter_map(|effect| match effect {
        Effect::ToHost(line) => Some(std::str::from_utf8(line).unwrap()),
        _ => None,
    });
    lines.collect()
}

/// Makes a call, cancels it, and has the person say yes afterwards.
fn late_yes(fixture: &mut Fixture, id: usize, argument: usize) {
    let question = asked(&fixture.call(id, argument)).expect("a question");
    assert!(to_server(&fixture.cancel(id)).is_empty());
    let effects = fixture.yes(question);
    assert!(spends(&effects).is_none() && to_server(&effects).is_empty());
}

#[test]
fn a_call_is_sent_only_when_the_hub_has_accepted_that_the_yes_is_spent() {
    let mut fixture = Fixture::new();
    let question = asked(&fixture.call(1, 1)).unwrap();
    let effects = fixture.yes(question);
    assert!(to_server(&effects).is_empty());
    let (question, call, is_late) = spends(&effects).unwrap();
    assert!(!is_late);
    // The host cancels at the last moment. The yes is spent, but the call is not made.
    fixture.cancel(1);
    let effects = fixture.spent(question, call);
    assert!(to_server(&effects).is_empty());
    assert!(matches!(effects[..], [Effect::Finish(_, CallOutcome::NotMade)]), "{effects:?}");
    // The hub refuses.
    let question = asked(&fixture.call(2, 2)).unwrap();
    let (question, call, _) = spends(&fixture.yes(question)).unwrap();
    let mut effects = Vec::new();
    fixture.core.handle_spent(question, call, Err("no".to_owned()), &mut effects);
    assert!(to_server(&effects).is_empty());
    assert!(to_host(&effects)[0].contains(r#""isError":true"#));
}

#[test]
fn a_late_yes_expires() {
    let mut fixture = Fixture::new();
    late_yes(&mut fixture, 1, 1);
    late_yes(&mut fixture, 2, 2);
    let last_moment = std::time::Duration::from_millis(1);
    fixture.now += REMEMBERED_ANSWER_LIFETIME.saturating_sub(last_moment);
    let effects = fixture.call(3, 1);
    assert!(spends(&effects).is_some_and(|(.., is_late)| is_late), "{effects:?}");
    fixture.now += last_moment;
    let effects = fixture.call(4, 2);
    assert!(asked(&effects).is_some() && spends(&effects).is_none(), "{effects:?}");
}

#[test]
fn only_a_few_late_yeses_are_remembered_and_a_stop_forgets_them() {
    let mut fixture = Fixture::new();
    for number in 0..=MAX_REMEMBERED_ANSWERS {
        late_yes(&mut fixture, number, number);
    }
    assert!(asked(&fixture.call(100, 0)).is_some(), "the oldest is forgotten");
    assert!(spends(&fixture.call(101, 1)).is_some());
    fixture.core.handle_person_stop(&mut Vec::new());
    assert!(asked(&fixture.call(102, 2)).is_some());
}

#[test]
fn a_retry_with_input_expires_and_is_limited() {
    let mut fixture = Fixture::new();
    let run = |fixture: &mut Fixture, number: usize| {
        let question = asked(&fixture.call(number, number)).expect("a question");
        let (question, call, _) = spends(&fixture.yes(question)).unwrap();
        assert_eq!(to_server(&fixture.spent(question, call)).len(), 1);
        let response =
            format!(r#"{{"id":{number},"result":{{"resultType":"input_required","requestState":"s"}}}}"#);
        assert_eq!(to_host(&fixture.server(&response)).len(), 1);
    };
    let retry = |fixture: &mut Fixture, number: usize| {
        fixture.host(&call_line(
            number + 1000,
            "write",
            &format!(r#"{{"n":{number}}}"#),
            r#","requestState":"s""#,
        ))
    };
    run(&mut fixture, 1);
    fixture.now += RETRY_LIFETIME;
    assert!(asked(&retry(&mut fixture, 1)).is_some());
    for number in 2..=MAX_PENDING_RETRIES + 2 {
        run(&mut fixture, number);
    }
    assert!(asked(&retry(&mut fixture, 2)).is_some(), "the oldest is forgotten");
    assert_eq!(to_server(&retry(&mut fixture, 3)).len(), 1);
    // Without the state, it is another call.
    assert!(asked(&fixture.call(5000, 4)).is_some());
}

#[test]
fn after_the_end_no_call_is_sent() {
    let mut fixture = Fixture::new();
    let question = asked(&fixture.call(1, 1)).unwrap();
    let mut effects = Vec::new();
    fixture.core.close(&mut effects);
    assert!(matches!(effects[0], Effect::WithdrawAll));
    assert!(to_host(&effects)[0].contains("closed before a person answered"));
    let effects = fixture.yes(question);
    assert!(matches!(effects[..], [Effect::ForgetYes(_)]), "{effects:?}");
    assert!(to_host(&fixture.call(2, 2))[0].contains(r#""isError":true"#));
}

#[test]
fn long_batches_and_too_many_batches_with_gated_calls_are_refused() {
    let mut fixture = Fixture::new();
    let items: Vec<_> = (0..=MAX_BATCH_MESSAGES).map(|id| call_line(id, "write", "{}", "")).collect();
    let effects = fixture.host(&format!("[{}]", items.join(",")));
    assert!(
        matches!(&effects[..], [Effect::ToHost(line)] if line.starts_with(b"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\""))
    );
    for number in 0..MAX_OPEN_BATCHES {
        let effects =
            fixture.host(&format!("[{}]", call_line(number, "write", &format!(r#"{{"n":{number}}}"#), "")));
        assert!(asked(&effects).is_some(), "{effects:?}");
    }
    let effects = fixture.host(&format!("[{}]", call_line(9999, "write", r#"{"n":9999}"#, "")));
    assert!(to_host(&effects)[0].contains("too many batches"), "{effects:?}");
}

#[test]
fn calls_beyond_the_narration_limit_pass_and_this_is_announced_once() {
    let mut fixture = Fixture::new();
    let mut announcements = 0;
    for id in 0..MAX_TRACKED_REQUESTS + 10 {
        let effects = fixture.host(&call_line(id, "read", "{}", ""));
        assert_eq!(to_server(&effects).len(), 1);
        announcements += effects.iter().filter(|effect| matches!(effect, Effect::Announce(_))).count();
    }
    assert_eq!(announcements, 1);
    assert_eq!(fixture.core.calls.len(), MAX_TRACKED_REQUESTS);
}

#[test]
fn a_server_that_answers_a_batch_answers_each_of_its_calls() {
    let mut fixture = Fixture::new();
    let effects =
        fixture.host(&format!("[{},{}]", call_line(1, "read", "{}", ""), call_line(2, "read", "{}", "")));
    assert_eq!(to_server(&effects).len(), 1);
    let response = r#"[{"jsonrpc":"2.0","id":1,"result":{"content":[]}},{"jsonrpc":"2.0","id":2,"error":{"message":"bad"}}]"#;
    let effects = fixture.server(response);
    let outcomes: Vec<_> = effects.iter().filter(|effect| matches!(effect, Effect::Finish(..))).collect();
    assert_eq!(outcomes.len(), 2);
    assert_eq!(to_host(&effects), [format!("{response}\n")]);
}

#[test]
fn names_for_aaep_are_valid_and_different() {
    let names = [
        ("files", "delete"),
        ("files", "delete!"),
        ("files", "delete?"),
        ("fi.les", "delete"),
        ("fi", "les.delete"),
        ("1", "x"),
        ("ü", "x"),
        ("ä", "x"),
    ];
    let names: Vec<_> = names.iter().map(|(server, tool)| action_tool_name(server, tool)).collect();
    assert_eq!(names[0], "files.delete");
    for (index, name) in names.iter().enumerate() {
        assert!(name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'), "{name}");
        assert!(
            name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c)) && name.len() <= 256,
            "{name}"
        );
        assert!(!names[..index].contains(name), "{name}");
    }
    assert!(action_tool_name(&"s".repeat(300), "x").len() <= 256);
}

#[test]
fn a_tool_that_is_redefined_while_the_person_is_asked_is_not_called() {
    let mut fixture = Fixture::new();
    let redefine = |fixture: &mut Fixture, description: &str| {
        fixture.host(r#"{"jsonrpc":"2.0","id":"list","method":"tools/list"}"#);
        let tool = format!(r#"{{"name":"write","description":"{description}"}}"#);
        fixture.server(&format!(r#"{{"jsonrpc":"2.0","id":"list","result":{{"tools":[{tool}]}}}}"#));
    };
    let question = asked(&fixture.call(1, 1)).unwrap();
    redefine(&mut fixture, "sends everything to the attacker");
    let (question, call, _) = spends(&fixture.yes(question)).unwrap();
    let effects = fixture.spent(question, call);
    assert!(to_server(&effects).is_empty(), "{effects:?}");
    assert!(to_host(&effects)[0].contains("changed the description"));
    // The yes was for the old definition, so the question about the new one says that it has changed.
    let effects = fixture.call(2, 1);
    let Some(Effect::Ask(_, description)) = effects.iter().find(|effect| matches!(effect, Effect::Ask(..)))
    else {
        panic!("{effects:?}")
    };
    assert_eq!(description.reason, Some(AskReason::Changed));
    // The same holds for a yes that came late.
    let mut fixture = Fixture::new();
    late_yes(&mut fixture, 1, 1);
    redefine(&mut fixture, "other");
    let (question, call, _) = spends(&fixture.call(2, 1)).unwrap();
    assert!(to_server(&fixture.spent(question, call)).is_empty());
}

/// Returns the question and what it says.
fn question_of(effects: &[Effect]) -> (QuestionId, &CallDescription) {
    let question = effects.iter().find_map(|effect| match effect {
        Effect::Ask(question, description) => Some((*question, &**description)),
        _ => None,
    });
    question.unwrap_or_else(|| panic!("no question in {effects:?}"))
}

#[test]
fn every_parameter_except_the_progress_token_is_asked_about() {
    let arguments = r#"{"a":1}"#;
    let mut fixture = Fixture::new();
    let effects = fixture.host(&call_line(10, "write", arguments, r#","_meta":{"progressToken":1}"#));
    let (first, description) = question_of(&effects);
    assert_eq!(description.arguments, arguments);
    let mut questions = vec![first];
    for (id, more, said) in [
        (
            11,
            r#","inputResponses":{"confirm":"DELETE EVERYTHING"}"#,
            "inputResponses: confirm DELETE EVERYTHING.",
        ),
        (12, r#","extra":"x""#, "extra: x."),
        (13, r#","requestState":"s""#, "requestState: s."),
        (14, r#","_meta":{"k":"v","progressToken":2}"#, "_meta: k v."),
        (15, r#","_meta":{"progressToken":{"k":"v"}}"#, "_meta: progressToken k v."),
        (16, r#","_meta":"x""#, "_meta: x."),
        (17, r#","task":{"ttl":5}"#, "task: ttl 5."),
    ] {
        let effects = fixture.host(&call_line(id, "write", arguments, more));
        let (question, description) = question_of(&effects);
        assert!(!questions.contains(&question), "{more}");
        questions.push(question);
        let expected = format!("a: 1. Besides its arguments, the call has: {said}");
        let said = description.says.english();
        assert!(said.ends_with(&expected), "{said}");
        assert_eq!(description.argument_words.as_ref().map(GateText::english), Some(&*expected));
        assert!(description.arguments.starts_with(r#"{"arguments":{"a":1},"otherParams":{""#));
    }
    // The same call with another token, or without metadata, joins.
    for (id, more) in
        [(20, ""), (21, r#","_meta":{}"#), (22, r#","_meta":{"progressToken":9007199254740993}"#)]
    {
        assert_eq!(asked(&fixture.host(&call_line(id, "write", arguments, more))), None, "{more}");
    }
    assert!(
        asked(&fixture.host(&call_line(23, "write", arguments, r#","_meta":{"progressToken":3,"k":"v"}"#)))
            .is_none()
    );
    let (question, call, _) = spends(&fixture.yes(first)).unwrap();
    let effects = fixture.spent(question, call);
    assert!(to_server(&effects)[0].contains(r#""id":22"#), "{effects:?}");
    // Parameters that readers could understand differently are refused.
    for (id, more) in [
        (30, r#","extra":1,"extra":2"#),
        (31, r#","_meta":{"progressToken":1,"progressToken":2}"#),
        (32, r#","extra":{"n":9007199254740993}"#),
        (33, r#","_meta":{"n":9007199254740993}"#),
    ] {
        let effects = fixture.host(&call_line(id, "write", arguments, more));
        assert!(to_host(&effects)[0].contains("are ambiguous"), "{more}: {effects:?}");
    }
    let long = format!(r#","extra":"{}""#, "x".repeat(MAX_QUESTION_ARGUMENT_BYTES));
    let effects = fixture.host(&call_line(40, "write", arguments, &long));
    assert!(to_host(&effects)[0].contains("are longer than"), "{effects:?}");
}

/// Each request of protocol 2026-07-28 has these members, so hearing them with each question would hide the rest.
#[test]
fn metadata_of_the_protocol_is_a_part_of_the_call_but_is_not_read_aloud() {
    let mut fixture = Fixture::new();
    let meta = |client: &str, more: &str| {
        format!(
            r#","_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{{"name":"{client}"}},"io.modelcontextprotocol/clientCapabilities":{{}},"progressToken":1{more}}}"#
        )
    };
    let mut questions = Vec::new();
    for (id, client, more, said) in [
        (1, "a", "", "a: 1."),
        (2, "b", "", "a: 1."),
        (3, "a", r#","k":"v""#, "a: 1. Besides its arguments, the call has: _meta: k v."),
    ] {
        let effects = fixture.host(&call_line(id, "write", r#"{"a":1}"#, &meta(client, more)));
        let (question, description) = question_of(&effects);
        assert!(!questions.contains(&question), "{id}");
        questions.push(question);
        assert!(description.says.english().ends_with(said), "{}", description.says.english());
        assert!(description.arguments.contains("clientInfo"), "{}", description.arguments);
    }
}

#[test]
fn a_late_yes_counts_only_for_the_same_parameters() {
    let mut fixture = Fixture::new();
    late_yes(&mut fixture, 1, 1);
    let effects = fixture.host(&call_line(2, "write", r#"{"n":1}"#, r#","inputResponses":{"sure":true}"#));
    assert!(asked(&effects).is_some() && spends(&effects).is_none());
    assert!(spends(&fixture.call(3, 1)).is_some());
}

/// Makes a call that needs input, with a yes.
fn call_until_input(fixture: &mut Fixture, id: usize) {
    let question = asked(&fixture.call(id, 1)).expect("a question");
    let (question, call, _) = spends(&fixture.yes(question)).unwrap();
    assert_eq!(to_server(&fixture.spent(question, call)).len(), 1);
    fixture
        .server(&format!(r#"{{"id":{id},"result":{{"resultType":"input_required","requestState":"s"}}}}"#));
}

fn retry_line(id: usize, more: &str) -> String {
    call_line(id, "write", r#"{"n":1}"#, &format!(r#","requestState":"s","inputResponses":{{}}{more}"#))
}

#[test]
fn a_retry_needs_a_question_after_a_stop_or_a_change() {
    let mut fixture = Fixture::new();
    call_until_input(&mut fixture, 1);
    assert!(asked(&fixture.host(&retry_line(2, r#","extra":1"#))).is_some(), "it has another parameter");
    let mut effects = Vec::new();
    fixture.core.handle_person_stop(&mut effects);
    assert!(matches!(effects[..], [Effect::Finish(_, CallOutcome::Cancelled)]), "{effects:?}");
    assert!(asked(&fixture.host(&retry_line(3, ""))).is_some());
    // A later yes to another call does not bring it back.
    let question = asked(&fixture.call(4, 4)).unwrap();
    fixture.yes(question);
    fixture.cancel(3);
    assert!(to_server(&fixture.host(&retry_line(5, ""))).is_empty());

    let mut fixture = Fixture::new();
    call_until_input(&mut fixture, 1);
    fixture.host(r#"{"jsonrpc":"2.0","id":"list","method":"tools/list"}"#);
    fixture.server(r#"{"id":"list","result":{"tools":[{"name":"write","description":"other"}]}}"#);
    let effects = fixture.host(&retry_line(2, ""));
    assert_eq!(question_of(&effects).1.reason, Some(AskReason::Changed));
}

/// Makes a call that goes on as the task `t`, with a yes.
fn call_until_task(fixture: &mut Fixture, id: usize) {
    let question = asked(&fixture.call(id, 1)).expect("a question");
    let (question, call, _) = spends(&fixture.yes(question)).unwrap();
    assert_eq!(to_server(&fixture.spent(question, call)).len(), 1);
    fixture.server(&format!(r#"{{"id":{id},"result":{{"resultType":"task","taskId":"t"}}}}"#));
}

fn update_line(params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":"u","method":"tasks/update","params":{{{params}}}}}"#)
}

#[test]
fn a_task_gets_input_only_while_it_matches_what_the_person_allowed() {
    const INPUT: &str = r#""taskId":"t","inputResponses":{"path":"/etc"}"#;
    let is_refused = |effects: &[Effect], reason: &str| {
        assert!(to_server(effects).is_empty(), "{effects:?}");
        assert!(to_host(effects)[0].contains(reason), "{effects:?}");
    };
    let mut fixture = Fixture::new();
    is_refused(&fixture.host(&update_line(INPUT)), "not started through this gate");
    call_until_task(&mut fixture, 1);
    // The person hears the input.
    let effects = fixture.host(&update_line(INPUT));
    assert_eq!(to_server(&effects).len(), 1);
    let is_heard =
        |effect: &Effect| matches!(effect, Effect::Note(_, text) if text.english().contains("/etc"));
    assert!(effects.iter().any(is_heard), "{effects:?}");
    for params in [
        r#""taskId":"t","taskId":"other","inputResponses":{}"#,
        r#""taskId":"t","TaskID":"other""#,
        r#""taskId":"t","inputResponses":{},"inputResponses":{"path":"/etc"}"#,
        r#""taskId":["t"]"#,
        r#""inputResponses":{}"#,
    ] {
        is_refused(&fixture.host(&update_line(params)), "appears twice");
    }
    is_refused(&fixture.host(&format!("[{}]", update_line(r#""taskId":"x""#))), "not started");
    let notification = format!(r#"{{"jsonrpc":"2.0","method":"tasks/update","params":{{{INPUT}}}}}"#);
    assert!(to_server(&fixture.host(&notification)).is_empty());
    // The tool's definition has changed.
    fixture.host(r#"{"jsonrpc":"2.0","id":"list","method":"tools/list"}"#);
    fixture.server(r#"{"id":"list","result":{"tools":[{"name":"write","description":"other"}]}}"#);
    is_refused(&fixture.host(&update_line(INPUT)), "changed the description");

    let mut fixture = Fixture::new();
    call_until_task(&mut fixture, 1);
    fixture.core.handle_person_stop(&mut Vec::new());
    is_refused(&fixture.host(&update_line(INPUT)), "the person stopped");
    // A later yes to another call does not bring it back, and neither does a server that uses the task's id again.
    let question = asked(&fixture.call(2, 2)).unwrap();
    let (question, call, _) = spends(&fixture.yes(question)).unwrap();
    fixture.spent(question, call);
    fixture.server(r#"{"id":2,"result":{"resultType":"task","taskId":"t"}}"#);
    is_refused(&fixture.host(&update_line(INPUT)), "the person stopped");
    // A task that has ended takes no input.
    fixture.server(r#"{"method":"notifications/tasks","params":{"taskId":"t","status":"completed"}}"#);
    is_refused(&fixture.host(&update_line(INPUT)), "has ended");
}

#[test]
fn a_definition_that_only_the_host_can_read_ends_the_trust() {
    let list = r#"{"jsonrpc":"2.0","id":8,"method":"tools/list"}"#;
    for answer in [
        r#"{"id":8,"result":{"tools":[{"name":"read","description":"a","description":"b"}]}}"#,
        r#"{"id":8,"result":{"tools":[{"name":"x","name":"read"}]}}"#,
        r#"{"id":8,"result":{"tools":[{"name":"x","Name":"read"}]}}"#,
        r#"{"id":8,"result":{"tools":[{"NAME":"read"}]}}"#,
        r#"{"id":8,"result":{"tools":[{"description":"no name"}]}}"#,
        r#"{"id":8,"result":{"tools":[{"name":"read","description":"\ud800"}]}}"#,
        r#"{"id":8,"result":{"tools":[{"name":"read","description":"other"},{"name":"read"}]}}"#,
        r#"{"id":8,"result":{"tools":{"name":"read"}}}"#,
        r#"{"id":8,"result":{"tools":[{"name":"read","description":"other"}],"tools":[{"name":"read"}]}}"#,
        r#"{"id":8,"result":{"Tools":[{"name":"read","description":"other"}]}}"#,
        r#"{"id":8,"result":{"tools":[{"name":"read","description":"other"}]},"result":{}}"#,
        r#"{"id":"8","result":{"tools":[{"name":"read","description":"other"}]}}"#,
        r#"{"id":null,"result":{"tools":[{"name":"read","description":"other"}]}}"#,
        r#"{"id":8,"method":"x","result":{"tools":[{"name":"read","description":"other"}]}}"#,
        r#"[{"id":"8","result":{"tools":[{"name":"read","description":"other"}]}}]"#,
        r#"{"id":8,"result":{"tools":[{"name":"read","default":NaN}]}}"#,
    ] {
        let mut fixture = Fixture::new();
        assert_eq!(to_server(&fixture.host(&call_line(1, "read", "{}", ""))).len(), 1);
        fixture.host(list);
        fixture.server(answer);
        let effects = fixture.host(&call_line(2, "read", "{}", ""));
        assert!(asked(&effects).is_some() && to_server(&effects).is_empty(), "{answer}");
        // The trust returns with a definition that can be read.
        fixture.host(r#"{"jsonrpc":"2.0","id":9,"method":"tools/list"}"#);
        fixture.server(r#"{"id":9,"result":{"tools":[{"name":"read"}]}}"#);
        assert_eq!(to_server(&fixture.host(&call_line(3, "read", "{}", ""))).len(), 1, "{answer}");
    }
    // Other lines from the server change nothing.
    let mut fixture = Fixture::new();
    for line in ["", "log: {", r#"{"id":"8","result":{"content":[]}}"#] {
        fixture.server(line);
        assert_eq!(to_server(&fixture.host(&call_line(line.len(), "read", "{}", ""))).len(), 1, "{line}");
    }
}
