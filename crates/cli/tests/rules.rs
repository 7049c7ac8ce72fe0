//! Cases that break exactly one rule: each case goes through the real `sayso validate`, which must report that rule and
//! no other.
//!
//! The cases are in `tests/rules/*.json`, one file per chapter. `base.json` contains the valid lines that the cases
//! modify. The cases in `valid.json` must pass without a finding. A case has a `description`, which is unique for its
//! rule, and `lines`. Each line is one of:
//!
//! - a name such as `"tool.invoked"`: the line of `base.json` with this name;
//! - `{"of": NAME}`: the line with this name, modified by `set` and `drop` (JSON pointers), `at` (seconds since the
//!   first line), `first` (members that are written before all others) and `replace` (in the serialized text);
//! - `{"raw": …}` or `{"hex": …}`: text or bytes, unchanged.
//!
//! In `set`, `{"$repeat": ["x", 3]}` is `"xxx"`, `{"$list": ["x#", 2]}` is `["x0", "x1"]` and `{"$deep": 2}` is
//! `{"in": {"in": {}}}`. Each line gets a new event id and a timestamp one second after the previous line, unless the
//! case overrides them.
//!
//! `SAYSO_TEST_IGNORE=RULE` switches that rule off, so its cases must fail.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};
use std::sync::Arc;

use aaep::Timestamp;
use aaep::rule::{Rule, ValidationMode};
use libtest_mimic::{Arguments, Failed, Trial};
use seal::UnixMillis;
use serde_json::{Map, Value};

const BASE: &str = "base.json";
const VALID: &str = "valid.json";

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments = Arguments::from_args();
    let base = Arc::new(BaseLines::read()?);
    let mut cases = read_cases(VALID)?;
    let mut trials = vec![every_base_line_is_used(&base, &cases)];
    for chapter in chapter_files()? {
        cases.extend(read_cases(&chapter)?);
    }
    trials.push(every_rule_has_a_case(&cases));
    for case in cases {
        let base = Arc::clone(&base);
        trials.push(Trial::test(case.name(), move || case.run(&base)));
    }
    Ok(libtest_mimic::run(&arguments, trials).exit_code())
}

fn rules_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rules")
}

fn chapter_files() -> Result<Vec<String>, Box<dyn Error>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(rules_dir())? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.extension().is_some_and(|extension| extension == "json") && name != BASE && name != VALID {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

fn read_json(name: &str) -> Result<Value, String> {
    let text = fs::read_to_string(rules_dir().join(name)).map_err(|error| format!("{name}: {error}"))?;
    serde_json::from_str(&text).map_err(|error| format!("{name}: {error}"))
}

fn read_cases(name: &str) -> Result<Vec<RuleCase>, String> {
    let Value::Array(cases) = read_json(name)? else { return Err(format!("{name} is not an array")) };
    cases
        .iter()
        .map(|case| RuleCase::parse(case).ok_or_else(|| format!("{name}: {case} is not a valid case")))
        .collect()
}

fn every_rule_has_a_case(cases: &[RuleCase]) -> Trial {
    let covered: BTreeSet<String> = cases.iter().filter_map(|case| case.rule.clone()).collect();
    let names: Vec<String> = cases.iter().map(RuleCase::name).collect();
    Trial::test("every rule has a case, and every case has a known rule and a unique name", move || {
        let rules: BTreeSet<String> = Rule::all().map(|rule| rule.id().to_owned()).collect();
        let missing: Vec<_> = rules.difference(&covered).collect();
        let unknown: Vec<_> = covered.difference(&rules).collect();
        let mut seen = BTreeSet::new();
        let duplicates: Vec<_> = names.iter().filter(|name| !seen.insert(*name)).collect();
        if missing.is_empty() && unknown.is_empty() && duplicates.is_empty() {
            return Ok(());
        }
        Err(format!(
            "rules without a case: {missing:?}; unknown rules: {unknown:?}; duplicate names: {duplicates:?}"
        )
        .into())
    })
}

/// Checks that the first valid case uses every base line. Another test checks that the case itself passes.
fn every_base_line_is_used(base: &BaseLines, valid_cases: &[RuleCase]) -> Trial {
    let used: BTreeSet<String> = valid_cases.first().into_iter().flat_map(RuleCase::base_lines).collect();
    let unused: Vec<String> = base.0.keys().filter(|name| !used.contains(*name)).cloned().collect();
    Trial::test("every base line is in the first valid case", move || {
        if unused.is_empty() { Ok(()) } else { Err(format!("unused base lines: {unused:?}").into()) }
    })
}

/// Input lines and the one rule that they break, or no rule for a valid case.
struct RuleCase {
    rule: Option<String>,
    description: String,
    severity: Option<String>,
    arguments: Vec<String>,
    lines: Vec<Value>,
}

impl RuleCase {
    fn parse(case: &Value) -> Option<Self> {
        let text = |name: &str| Some(case.get(name)?.as_str()?.to_owned());
        let arguments = case.get("args").and_then(Value::as_array).into_iter().flatten();
        Some(Self {
            rule: text("rule"),
            description: text("description")?,
            severity: text("severity"),
            arguments: arguments
                .map(|argument| argument.as_str().map(str::to_owned))
                .collect::<Option<_>>()?,
            lines: case.get("lines")?.as_array()?.clone(),
        })
    }

    fn name(&self) -> String {
        format!("{} {}", self.rule.as_deref().unwrap_or("valid:"), self.description)
    }

    fn base_lines(&self) -> impl Iterator<Item = String> {
        self.lines.iter().filter_map(|line| line.as_str().or(line["of"].as_str()).map(str::to_owned))
    }

    fn run(&self, base: &BaseLines) -> Result<(), Failed> {
        let input = self.input(base)?;
        let output = self.validate(&input)?;
        let actual = ValidateResult::from_output(&output)?;
        let expected = self.expected()?;
        if actual == expected {
            return Ok(());
        }
        let (input, output) = (excerpt(&input), excerpt(&output.stdout));
        Err(format!("expected {expected:?}\nfound {actual:?}\ninput:\n{input}\noutput:\n{output}").into())
    }

    fn input(&self, base: &BaseLines) -> Result<Vec<u8>, String> {
        let mut input = Vec::new();
        let mut stamp = LineStamp { line: 0, millis: 0 };
        for line in &self.lines {
            input.extend(base.line_bytes(line, &mut stamp)?);
            input.push(b'\n');
        }
        Ok(input)
    }

    fn validate(&self, input: &[u8]) -> Result<Output, Failed> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sayso"));
        command.args(["validate", "--json"]).args(&self.arguments);
        if let Ok(rule) = std::env::var("SAYSO_TEST_IGNORE") {
            command.args(["--ignore", &rule]);
        }
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        // `validate` reads all of its input and prints little, so no pipe fills up.
        child.stdin.take().ok_or("no standard input")?.write_all(input)?;
        Ok(child.wait_with_output()?)
    }

    fn expected(&self) -> Result<ValidateResult, String> {
        let Some(id) = &self.rule else {
            return Ok(ValidateResult { findings: BTreeSet::new(), exit_code: Some(0) });
        };
        let rule = Rule::find(id).ok_or_else(|| format!("unknown rule {id}"))?;
        let is_receive_mode = self.arguments.iter().any(|argument| argument == "--receive");
        let mode = if is_receive_mode { ValidationMode::Receive } else { ValidationMode::Strict };
        let severity = self.severity.clone().unwrap_or_else(|| rule.severity(mode).as_str().to_owned());
        let exit_code = Some(i32::from(severity == "error"));
        Ok(ValidateResult { findings: BTreeSet::from([(id.clone(), severity)]), exit_code })
    }
}

/// Returns the first 4000 characters, to keep failure messages short.
fn excerpt(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().take(4000).collect()
}

/// The result of a run of `sayso validate`: each reported rule with its severity, and the exit code.
#[derive(Debug, PartialEq)]
struct ValidateResult {
    findings: BTreeSet<(String, String)>,
    exit_code: Option<i32>,
}

impl ValidateResult {
    fn from_output(output: &Output) -> Result<Self, Failed> {
        let mut findings = BTreeSet::new();
        for line in std::str::from_utf8(&output.stdout)?.lines() {
            let line: Value = serde_json::from_str(line)?;
            if let (Some(rule), Some(severity)) = (line["rule"].as_str(), line["severity"].as_str()) {
                findings.insert((rule.to_owned(), severity.to_owned()));
            }
        }
        Ok(Self { findings, exit_code: output.status.code() })
    }
}

/// Valid events and messages by name.
struct BaseLines(Map<String, Value>);

/// The number and the time of the next line. Its event id and its timestamp are derived from them.
struct LineStamp {
    line: u32,
    /// Milliseconds since the first line.
    millis: i64,
}

impl LineStamp {
    fn event_id(&self) -> String {
        format!("evt_5e1f9a0c4b7d{:020x}", self.line)
    }

    fn timestamp(&self) -> Result<String, String> {
        const FIRST_TIMESTAMP: UnixMillis = UnixMillis::new(1_779_632_531_342); // 2026-05-24T14:22:11.342Z
        let time = Timestamp::from_unix_millis(FIRST_TIMESTAMP + self.millis);
        time.map(|time| time.to_string())
            .ok_or_else(|| format!("{} ms is out of range for a timestamp", self.millis))
    }
}

impl BaseLines {
    fn read() -> Result<Self, String> {
        match read_json(BASE)? {
            Value::Object(lines) => Ok(Self(lines)),
            _ => Err(format!("{BASE} is not an object")),
        }
    }

    /// Returns the bytes of a line and advances the stamp.
    fn line_bytes(&self, line: &Value, stamp: &mut LineStamp) -> Result<Vec<u8>, String> {
        if let Some(raw) = line["raw"].as_str() {
            return Ok(raw.into());
        }
        if let Some(hex) = line["hex"].as_str() {
            return decode_hex(hex).ok_or_else(|| format!("{hex} is not hexadecimal"));
        }
        if let Some(seconds) = line["at"].as_f64() {
            stamp.millis = to_millis(seconds);
        }
        let text = self.line_text(line, stamp)?;
        stamp.line += 1;
        stamp.millis += 1000;
        Ok(text.into())
    }

    fn line_text(&self, line: &Value, stamp: &LineStamp) -> Result<String, String> {
        let name =
            line.as_str().or(line["of"].as_str()).ok_or_else(|| format!("{line} is not a valid line"))?;
        let mut members = self.0.get(name).cloned().ok_or_else(|| format!("unknown base line {name}"))?;
        for (pointer, value) in [("/event_id", stamp.event_id()), ("/timestamp", stamp.timestamp()?)] {
            if let Some(member) = members.pointer_mut(pointer) {
                *member = value.into();
            }
        }
        for (pointer, value) in line["set"].as_object().into_iter().flatten() {
            set_member(&mut members, pointer, expand_directives(value))?;
        }
        for pointer in line["drop"].as_array().into_iter().flatten() {
            drop_member(&mut members, pointer.as_str().unwrap_or_default())?;
        }
        let mut text = write_object(&members, &line["first"])?;
        for (old, new) in line["replace"].as_object().into_iter().flatten() {
            if !text.contains(old.as_str()) {
                return Err(format!("{old} is not in {text}"));
            }
            text = text.replacen(old.as_str(), new.as_str().unwrap_or_default(), 1);
        }
        Ok(text)
    }
}

#[allow(clippy::cast_possible_truncation, reason = "cases use small numbers of seconds")]
fn to_millis(seconds: f64) -> i64 {
    (seconds * 1000.0).round() as i64
}

fn decode_hex(hex: &str) -> Option<Vec<u8>> {
    let pairs = (0..hex.len()).step_by(2).map(|at| hex.get(at..at + 2));
    pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect()
}

fn set_member(members: &mut Value, pointer: &str, value: Value) -> Result<(), String> {
    let (parent, name) = parent_of(members, pointer)?;
    match parent {
        Value::Object(members) => {
            members.insert(name, value);
        }
        Value::Array(items) => match name.parse::<usize>().ok().and_then(|at| items.get_mut(at)) {
            Some(item) => *item = value,
            None => items.push(value),
        },
        _ => return Err(format!("{pointer} cannot be set")),
    }
    Ok(())
}

fn drop_member(members: &mut Value, pointer: &str) -> Result<(), String> {
    let (parent, name) = parent_of(members, pointer)?;
    let dropped = parent.as_object_mut().and_then(|members| members.remove(&name));
    dropped.map(|_| ()).ok_or_else(|| format!("{pointer} not found"))
}

fn parent_of<'v>(members: &'v mut Value, pointer: &str) -> Result<(&'v mut Value, String), String> {
    let not_found = || format!("{pointer} not found");
    let (parent, name) = pointer.rsplit_once('/').ok_or_else(not_found)?;
    let parent = members.pointer_mut(parent).ok_or_else(not_found)?;
    Ok((parent, name.replace("~1", "/").replace("~0", "~")))
}

/// Returns the value with `$repeat`, `$list` and `$deep` expanded.
fn expand_directives(value: &Value) -> Value {
    let count = |name: &str| usize::try_from(value[name][1].as_u64()?).ok();
    if let (Some(text), Some(count)) = (value["$repeat"][0].as_str(), count("$repeat")) {
        return text.repeat(count).into();
    }
    if let Some(count) = count("$list") {
        return (0..count).map(|at| with_number(&value["$list"][0], at)).collect();
    }
    if let Some(depth) = value["$deep"].as_u64() {
        let wrap = |value| Value::Object(Map::from_iter([("in".to_owned(), value)]));
        return (0..depth).fold(Value::Object(Map::new()), |value, _| wrap(value));
    }
    match value {
        Value::Array(items) => items.iter().map(expand_directives).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), expand_directives(value))).collect()
        }
        _ => value.clone(),
    }
}

/// Returns the value with each `#` replaced by the number.
fn with_number(value: &Value, number: usize) -> Value {
    match value {
        Value::String(text) => text.replace('#', &number.to_string()).into(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), with_number(value, number))).collect()
        }
        _ => value.clone(),
    }
}

/// Serializes an object: the members in `first`, then the rest in the order that §3.6 recommends.
fn write_object(members: &Value, first: &Value) -> Result<String, String> {
    const RECOMMENDED_ORDER: [&str; 12] = [
        "@context",
        "aaep_version",
        "type",
        "event_id",
        "session_id",
        "sequence_number",
        "timestamp",
        "producer",
        "verbosity",
        "urgency",
        "localization_hints",
        "correlation_id",
    ];
    let members = members.as_object().ok_or("a line must be an object")?;
    let rank = |name: &str| {
        if first.as_array().is_some_and(|first| first.iter().any(|member| member == name)) {
            return 0;
        }
        match RECOMMENDED_ORDER.iter().position(|recommended| *recommended == name) {
            Some(at) => at + 1,
            None => RECOMMENDED_ORDER.len() + 1 + usize::from(name == "extensions"),
        }
    };
    let mut members: Vec<_> = members.iter().collect();
    members.sort_by_key(|(name, _)| rank(name));
    let members: Vec<_> =
        members.into_iter().map(|(name, value)| format!("{}:{value}", Value::from(&**name))).collect();
    Ok(format!("{{{}}}", members.join(",")))
}
