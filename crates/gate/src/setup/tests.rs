//! Random documents survive installation and removal.

use proptest::prelude::*;

use super::harness::HookLayout;
use super::install_record::{InstallRecord, OriginalFile, RecordFolder};
use super::jsonc::{Json, SyntaxTree, split_byte_order_mark};
use super::{Harness, HookOptions, hook_entries};

const HARNESSES: [Harness; 5] =
    [Harness::Claude, Harness::Codex, Harness::Cursor, Harness::Gemini, Harness::VsCode];

/// White space and comments between two tokens. `{}` is replaced by a number, so that no two comments are equal.
const TRIVIA: [&str; 10] =
    ["", "", "", " ", "\n", "\r\n\t", "\n\n    ", " /*c{}*/ ", " // c{}\n", "/* c{}\n * \" [ } , */"];

/// A random JSON value with choices for the trivia of its text.
fn json() -> impl Strategy<Value = Json> {
    let name = || prop::sample::select(vec!["hooks", "a", "é\"\\", "", "matcher", "model", "version"]);
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Boolean),
        prop::sample::select(vec!["0", "-1.5e+3", "9007199254740993", "1E400"])
            .prop_map(|number| Json::Number(number.to_owned())),
        "[ -~é\u{1f600}\n]{0,6}".prop_map(Json::Text),
    ];
    leaf.prop_recursive(3, 20, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::Array),
            prop::collection::btree_map(name(), inner, 0..4).prop_map(|members| {
                Json::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
            }),
        ]
    })
}

/// Somebody else's hooks of one harness.
fn foreign_hooks(harness: Harness) -> impl Strategy<Value = Json> {
    let command =
        prop::sample::select(vec!["echo hi", "/opt/other hook claude", "sayso ask x", "sayso hook", "$X"]);
    let hook = command.prop_map(|command| Json::object([("command", Json::text(command))]));
    let entry =
        (prop::collection::vec(hook, 0..3), json()).prop_map(move |(hooks, other)| match harness.layout() {
            HookLayout::Flat => hooks.into_iter().next().unwrap_or(other),
            HookLayout::Grouped => Json::object([("matcher", other), ("hooks", Json::Array(hooks))]),
        });
    let events: Vec<&str> = harness.events().iter().map(|event| event.name).chain(["Other"]).collect();
    let arrays = prop::collection::vec(entry, 0..3).prop_map(Json::Array);
    prop::collection::btree_map(prop::sample::select(events), arrays, 0..4).prop_map(|members| {
        Json::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    })
}

/// A configuration, the choices for its trivia, and a harness.
fn configuration() -> impl Strategy<Value = (Harness, Json, Vec<usize>)> {
    prop::sample::select(HARNESSES.to_vec()).prop_flat_map(|harness| {
        let members = prop::collection::btree_map("[a-g]", json(), 0..4);
        let document = (members, prop::option::of(foreign_hooks(harness)), any::<bool>()).prop_map(
            |(members, hooks, is_first)| {
                let mut members: Vec<(String, Json)> = members.into_iter().collect();
                if let Some(hooks) = hooks {
                    let index = if is_first { 0 } else { members.len() };
                    members.insert(index, ("hooks".to_owned(), hooks));
                }
                Json::Object(members)
            },
        );
        (Just(harness), document, prop::collection::vec(any::<prop::sample::Index>(), 64)).prop_map(
            |(harness, document, choices)| {
                (harness, document, choices.iter().map(|choice| choice.index(TRIVIA.len() * 2)).collect())
            },
        )
    })
}

/// Writes JSON with comments and trailing commas.
struct Writer<'c> {
    out: String,
    choices: std::iter::Cycle<std::iter::Copied<std::slice::Iter<'c, usize>>>,
    comments: usize,
}

impl Writer<'_> {
    fn write(value: &Json, choices: &[usize]) -> (String, usize) {
        let mut writer = Writer { out: String::new(), choices: choices.iter().copied().cycle(), comments: 0 };
        writer.trivia();
        writer.value(value);
        writer.trivia();
        (writer.out, writer.comments)
    }

    fn trivia(&mut self) {
        // Half of the choices stand for no trivia at all.
        let trivia = TRIVIA.get(self.choices.next().unwrap()).copied().unwrap_or_default();
        if trivia.contains("{}") {
            self.comments += 1;
        }
        self.out.push_str(&trivia.replace("{}", &format!("<{}>", self.comments)));
    }

    fn value(&mut self, value: &Json) {
        match value {
            Json::Null => self.out.push_str("null"),
            Json::Boolean(value) => self.out.push_str(&value.to_string()),
            Json::Number(number) => self.out.push_str(number),
            Json::Text(text) => self.out.push_str(&serde_text(text)),
            Json::Array(items) => self.list('[', ']', items, Self::value),
            Json::Object(members) => self.list('{', '}', members, |writer, (name, value)| {
                writer.out.push_str(&serde_text(name));
                writer.trivia();
                writer.out.push(':');
                writer.trivia();
                writer.value(value);
            }),
        }
    }

    fn list<T>(&mut self, open: char, close: char, items: &[T], write: impl Fn(&mut Self, &T)) {
        self.out.push(open);
        self.trivia();
        for (index, item) in items.iter().enumerate() {
            write(self, item);
            self.trivia();
            if index + 1 < items.len() || self.choices.next().unwrap() == 0 {
                self.out.push(',');
                self.trivia();
            }
        }
        self.out.push(close);
    }
}

fn serde_text(text: &str) -> String {
    seal::json::write_object(|writer| writer.key("t").text(text))
        .replacen("{\"t\":", "", 1)
        .trim_end_matches('}')
        .to_owned()
}

fn value_of(text: &str) -> Json {
    let tree =
        SyntaxTree::parse(split_byte_order_mark(text).1).unwrap_or_else(|error| panic!("{error}: {text}"));
    Json::from(tree.root())
}

/// Removes what removal also removes: empty arrays of events, empty hooks, and Cursor's version.
fn without_empty_hooks(harness: Harness, value: Json) -> Json {
    let Json::Object(mut members) = value else { return value };
    for (name, value) in &mut members {
        if name == "hooks"
            && let Json::Object(events) = value
        {
            events.retain(|(_, hooks)| *hooks != Json::Array(Vec::new()));
        }
    }
    members.retain(|(name, value)| {
        let is_empty = name == "hooks" && *value == Json::Object(Vec::new());
        !(is_empty || harness == Harness::Cursor && name == "version")
    });
    Json::Object(members)
}

proptest! {
    #![proptest_config(testing::property::cases(600))]

    #[test]
    fn a_configuration_survives_installation_and_removal((harness, value, choices) in configuration()) {
        let (text, comments) = Writer::write(&value, &choices);
        prop_assert_eq!(&value_of(&text), &value, "{}", text);
        let options = HookOptions { hub: Some("unix:/run/a b.sock".to_owned()), ..HookOptions::default() };
        let words = harness.hook_words("/opt/s p/sayso", &options);
        let installed = hook_entries::install(harness, &text, &words).unwrap();

        // The hooks are there, once, and a second run changes nothing.
        let state = hook_entries::inspect(harness, &installed).unwrap();
        prop_assert_eq!(state.missing, Vec::<String>::new(), "{}", installed);
        prop_assert_eq!(state.programs, vec!["/opt/s p/sayso".to_owned()]);
        prop_assert_eq!(hook_entries::install(harness, &installed, &words).unwrap(), installed.clone());
        // Other options replace the hooks.
        let other_words = harness.hook_words("sayso", &HookOptions { is_required: true, ..options });
        let changed = hook_entries::install(harness, &installed, &other_words).unwrap();
        prop_assert_eq!(hook_entries::inspect(harness, &changed).unwrap().programs, vec!["sayso".to_owned()]);

        // Removal keeps every other value in its place, and every comment.
        for installed in [&installed, &changed] {
            let removed = hook_entries::remove(harness, installed).unwrap();
            prop_assert_eq!(
                without_empty_hooks(harness, value_of(&removed)),
                without_empty_hooks(harness, value.clone()),
                "{}\n{}", text, removed
            );
            for edited in [installed, &removed] {
                for comment in 1..=comments {
                    let count = edited.matches(&format!("<{comment}>")).count();
                    prop_assert_eq!(count, 1, "<{}>\n{}\n{}", comment, text, edited);
                }
            }
            prop_assert_eq!(hook_entries::remove(harness, &removed).unwrap(), removed.clone());
        }

        // The record restores the exact text, even after it was stored.
        let folder = tempfile::tempdir().unwrap();
        let (records, file) = (RecordFolder(folder.path().to_owned()), folder.path().join("settings.json"));
        let record = InstallRecord::new(Some(&text), &installed, Vec::new());
        records.store(&file, &record).unwrap();
        let record = records.load(&file).unwrap();
        prop_assert_eq!(record.restore(&installed), Some(OriginalFile { text: Some(text) }));
        prop_assert_eq!(record.restore(&changed), None);
    }

    #[test]
    fn any_text_is_edited_to_valid_json_or_refused(text in "[{}\\[\\]\",:/* \n\r\\-0-9a-zé\\\\\u{feff}]{0,40}", harness in prop::sample::select(HARNESSES.to_vec())) {
        let words = harness.hook_words("sayso", &HookOptions::default());
        if let Ok(installed) = hook_entries::install(harness, &text, &words) {
            value_of(&installed);
            value_of(&hook_entries::remove(harness, &installed).unwrap());
        }
    }
}

#[test]
fn hooks_that_somebody_else_wrote_do_not_count_as_saysos_hooks() {
    let text = r#"{"hooks":{"PreToolUse":[{"hooks":[
        {"type":"command","command":"sayso hook codex"},
        {"type":"command","command":"sayso hook claude | tee log"},
        {"type":"command","command":"notsayso hook claude"},
        {"type":"http","url":"http://localhost/sayso"}]}]}}"#;
    assert_eq!(hook_entries::remove(Harness::Claude, text).unwrap(), text);
    assert_eq!(hook_entries::inspect(Harness::Claude, text).unwrap().present, Vec::<String>::new());
}

#[test]
fn documents_that_cannot_be_edited_safely_are_refused() {
    let install = |text: &str| {
        hook_entries::install(
            Harness::Claude,
            text,
            &Harness::Claude.hook_words("sayso", &HookOptions::default()),
        )
    };
    for (text, reason) in [
        ("{", "it is not valid JSON (line 1"),
        ("{'a': 1}", "it is not valid JSON (line 1"),
        ("{a: 1}", "it is not valid JSON (line 1"),
        ("{\"a\": 1 \"b\": 2}", "it is not valid JSON (line 1"),
        ("{}\n{}", "it is not valid JSON (line 2"),
        ("[]", "it must contain a JSON object"),
        ("null", "it must contain a JSON object"),
        (r#"{"hooks": {}, "hooks": {}}"#, "it contains the member \"hooks\" twice"),
        (r#"{"hooks": {}, "\u0068ooks": {}}"#, "it contains the member \"hooks\" twice"),
        (r#"{"hooks": []}"#, "\"hooks\" must be an object"),
        (r#"{"hooks": {"PreToolUse": {}}}"#, "\"PreToolUse\" must be an array"),
        (r#"{"hooks": {"PreToolUse": [{"hooks": 1}]}}"#, "\"hooks\" must be an array"),
    ] {
        let refusal = install(text).unwrap_err();
        assert!(refusal.starts_with(reason), "{text}: {refusal}");
    }
    let deep = format!("{{\"a\": {}{}}}", "[".repeat(10_000), "]".repeat(10_000));
    assert!(install(&deep).unwrap_err().contains("depth"));
}

#[test]
fn a_byte_order_mark_and_windows_line_ends_stay() {
    let text = "\u{feff}{\r\n\t\"a\": 1\r\n}\r\n";
    let words = Harness::Claude.hook_words("sayso", &HookOptions::default());
    let installed = hook_entries::install(Harness::Claude, text, &words).unwrap();
    assert!(
        installed.starts_with("\u{feff}{\r\n\t\"a\": 1,\r\n\t\"hooks\": {\r\n\t\t\"SessionStart\""),
        "{installed}"
    );
    assert_eq!(installed.matches('\n').count(), installed.matches("\r\n").count());
    assert_eq!(hook_entries::remove(Harness::Claude, &installed).unwrap(), text);
}

#[test]
fn a_hook_that_the_user_moved_is_removed_and_its_neighbours_stay() {
    let text = r#"{
  "hooks": {
    "PreToolUse": [
      { "matcher": "Bash", "hooks": [ { "command": "/x/sayso", "args": ["hook", "claude"] } ] },
      // Mine.
      { "matcher": "Edit", "hooks": [
        { "command": "sayso hook claude --gate all" }, // why
        { "command": "echo" }
      ] }
    ],
    "OtherEvent": [ { "hooks": [ { "command": "sayso hook claude" } ] } ]
  }
}"#;
    let expected = r#"{
  "hooks": {
    "PreToolUse": [
      // Mine.
      { "matcher": "Edit", "hooks": [
        // why
        { "command": "echo" }
      ] }
    ]
  }
}"#;
    assert_eq!(hook_entries::remove(Harness::Claude, text).unwrap(), expected);
}
