//! Where values come from, the weakest first: default, file, environment, flag.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Command, Error};

use super::keys::{KEYS, Key};
use super::value::{Found, Kind};
use super::{Config, file};

/// The variable that names the file.
const CONFIG: &str = "SAYSO_CONFIG";
/// Variables that are for the tests of this project.
const TESTS: &str = "SAYSO_TEST_";
/// Where the hub is and how to be let in, for agents and listeners: they are ours too, and no settings of a hub.
const OTHERS: [&str; 2] = ["SAYSO_URL", "SAYSO_TOKEN"];
/// The file that is read from the data folder if none is named.
const FILE: &str = "sayso.toml";

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Origin {
    Default,
    File(PathBuf, usize),
    Environment(String),
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path, line) => write!(f, "{}:{line}", path.display()),
            Self::Environment(name) => f.write_str(name),
            Self::Flag(name) => write!(f, "--{name}"),
        }
    }
}

impl Origin {
    fn layer(&self) -> u8 {
        match self {
            Self::Default => 0,
            Self::File(..) => 1,
            Self::Environment(_) => 2,
            Self::Flag(_) => 3,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Flags(Vec<(&'static str, Vec<OsString>)>);

impl clap::Args for Flags {
    fn augment_args(command: Command) -> Command {
        let defaults = Config::default();
        command.args(KEYS.iter().map(|key| {
            let arg = Arg::new(key.name).long(key.flag()).value_parser(clap::value_parser!(OsString));
            let mut help = key.meaning.to_owned();
            if !matches!(key.kind, Kind::Flag | Kind::List)
                && let Some(default) = key.shown(&defaults)
            {
                help = format!("{help} [default: {}]", default.trim_matches('"'));
            }
            let arg = match key.kind {
                Kind::Address => arg.value_name("ADDR"),
                Kind::Path => arg.value_name("PATH"),
                Kind::List => arg.value_name("HOST").action(ArgAction::Append),
                Kind::Count(..) => arg.value_name("COUNT"),
                Kind::Bytes(..) => arg.value_name("BYTES"),
                Kind::Time(..) => arg.value_name("DURATION"),
                Kind::Flag => arg
                    .value_name("BOOL")
                    .num_args(0..=1)
                    .require_equals(true)
                    .default_missing_value("true")
                    .hide_possible_values(true),
            };
            let arg = if key.is_limit() { arg.help_heading("Limits").hide_short_help(true) } else { arg };
            arg.help(help)
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        for key in KEYS {
            if let Some(words) = matches.get_many::<OsString>(key.name) {
                self.0.push((key.name, words.cloned().collect()));
            }
        }
        Ok(())
    }
}

/// What is in force, and why.
pub(crate) struct Loaded {
    pub(crate) config: Config,
    origins: Vec<Origin>,
}

impl Loaded {
    /// Puts the layers on each other. `named` is the file that a flag names.
    pub(crate) fn new(flags: &Flags, named: Option<&Path>) -> Result<Self, String> {
        let variables = variables()?;
        let mut outer = Self::default();
        outer.add_outer(&variables, flags)?;
        let mut loaded = Self::default();
        let by_variable =
            variables.iter().find(|(name, _)| name == CONFIG).map(|(_, value)| PathBuf::from(value));
        if let Some(path) = named.map(Path::to_owned).or(by_variable) {
            loaded.add_file(&path, true)?;
        } else if !outer.config.memory {
            loaded.add_file(&outer.config.data.join(FILE), false)?;
        }
        loaded.add_outer(&variables, flags)?;
        loaded.check()?;
        Ok(loaded)
    }

    pub(super) fn origin(&self, name: &str) -> &Origin {
        let at = KEYS.iter().position(|key| key.name == name);
        at.and_then(|at| self.origins.get(at)).unwrap_or(&Origin::Default)
    }

    fn add_file(&mut self, path: &Path, named: bool) -> Result<(), String> {
        let Some(text) = file::read(path)? else {
            return if named { Err(format!("{}: there is no such file", path.display())) } else { Ok(()) };
        };
        let parsed = file::parse(&text, &mut |entry| {
            let key = Key::named(&entry.name).ok_or_else(|| {
                let begins = format!("{}.", entry.name);
                if KEYS.iter().any(|key| key.name.starts_with(&begins)) {
                    return format!("{} is a section: its keys stand below [{}]", entry.name, entry.name);
                }
                let near = nearest(&entry.name, KEYS.iter().map(|key| key.name.to_owned()));
                format!("there is no key {}{near}", crate::print::printable(&entry.name))
            })?;
            if !named && key.name == "data" {
                return Err("data: this file was found in the data folder, and cannot say where that is; name it with --config".to_owned());
            }
            self.put(key, &entry.found, Origin::File(path.to_owned(), entry.line))
                .map_err(|why| format!("{}: {why}", key.name))
        });
        parsed.map_err(|(line, why)| format!("{}:{line}: {why}", path.display()))
    }

    fn add_outer(&mut self, variables: &[(String, OsString)], flags: &Flags) -> Result<(), String> {
        for (name, value) in variables.iter().filter(|(name, _)| name != CONFIG) {
            let key = KEYS.iter().find(|key| key.variable() == *name).ok_or_else(|| {
                let near = nearest(name, KEYS.iter().map(Key::variable).chain([CONFIG.to_owned()]));
                format!("{}: there is no such setting{near}", crate::print::printable(name))
            })?;
            self.put(key, &Found::Words(vec![value.as_os_str()]), Origin::Environment(name.clone()))
                .map_err(|why| format!("{name}: {why}"))?;
        }
        for (key, words) in flags.0.iter().filter_map(|(name, words)| Some((Key::named(name)?, words))) {
            let words = words.iter().map(OsString::as_os_str).collect::<Vec<&OsStr>>();
            self.put(key, &Found::Words(words), Origin::Flag(key.flag()))
                .map_err(|why| format!("--{}: {why}", key.flag()))?;
        }
        Ok(())
    }

    fn put(&mut self, key: &Key, found: &Found<'_>, origin: Origin) -> Result<(), String> {
        key.set(&mut self.config, found)?;
        let at = KEYS.iter().position(|other| other.name == key.name);
        if let Some(place) = at.and_then(|at| self.origins.get_mut(at)) {
            *place = origin;
        }
        Ok(())
    }

    /// What one value means for another.
    fn check(&mut self) -> Result<(), String> {
        let config = &self.config;
        let (memory, data) = (self.origin("memory"), self.origin("data"));
        if config.memory && memory.layer() <= data.layer() {
            return Err(format!(
                "{memory}: everything is kept in memory, so {data} says nothing; give one of them"
            ));
        }
        if config.open && config.tokens.is_some() {
            let (open, tokens) = (self.origin("open"), self.origin("tokens"));
            return Err(format!("{open}: everybody is let in, so {tokens} says nothing; give one of them"));
        }
        for (given, missing, name) in [
            (&config.tls_cert, &config.tls_key, ["tls_cert", "tls_key"]),
            (&config.tls_key, &config.tls_cert, ["tls_key", "tls_cert"]),
        ] {
            if given.is_some() && missing.is_none() {
                let (origin, [_, other]) = (self.origin(name[0]), name);
                return Err(format!("{origin}: TLS needs --{} too", other.replace('_', "-")));
            }
        }
        if let (Some(keep), Some(most)) = (config.hub.retention.bytes, config.journal.most_bytes)
            && keep > most
        {
            let (keeps, mosts) = (self.origin("retention.bytes"), self.origin("journal.most_bytes"));
            return Err(format!(
                "{keeps}: retention.bytes is more than journal.most_bytes of {mosts}, so nothing would be forgotten in time"
            ));
        }
        Ok(())
    }
}

impl Default for Loaded {
    fn default() -> Self {
        Self { config: Config::default(), origins: vec![Origin::Default; KEYS.len()] }
    }
}

/// The variables that are for us, by name.
fn variables() -> Result<Vec<(String, OsString)>, String> {
    let mut variables = Vec::new();
    for (name, value) in std::env::vars_os() {
        let lossy = name.to_string_lossy();
        if lossy.starts_with("SAYSO_") && !lossy.starts_with(TESTS) && !OTHERS.contains(&&*lossy) {
            let name = name
                .to_str()
                .ok_or_else(|| format!("{}: there is no such setting", crate::print::printable(&lossy)))?;
            variables.push((name.to_owned(), value));
        }
    }
    variables.sort();
    Ok(variables)
}

/// A hint at what may have been meant.
fn nearest(name: &str, known: impl Iterator<Item = String>) -> String {
    let found = known.map(|known| (distance(name, &known), known)).min();
    match found {
        Some((distance, known)) if distance <= (name.len() / 4).min(3) => format!("; did you mean {known}?"),
        _ => "; sayso serve --print-config shows all".to_owned(),
    }
}

/// How many characters must be put in, taken out or replaced.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (above, c) in one.chars().enumerate() {
        let mut before = above;
        let mut left = above + 1;
        let mut next = vec![left];
        for (up, d) in row.iter().skip(1).zip(&other) {
            let cost = (before + usize::from(c != *d)).min(left + 1).min(up + 1);
            (before, left) = (*up, cost);
            next.push(cost);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_is_found_by_what_must_be_changed() {
        for (one, other, expected) in
            [("", "abc", 3), ("abc", "abc", 0), ("lease", "leese", 1), ("kitten", "sitting", 3)]
        {
            assert_eq!(distance(one, other), expected, "{one} {other}");
            assert_eq!(distance(other, one), expected, "{other} {one}");
        }
    }

    #[test]
    fn names_are_one_to_one_and_defaults_are_within_their_bounds() {
        let mut names: Vec<_> = KEYS.iter().flat_map(|key| [key.flag(), key.variable()]).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 2 * KEYS.len());
        for key in KEYS {
            let mut config = Config::default();
            if let Some(shown) = key.shown(&config) {
                let text = format!("{} = {shown}", key.name);
                let set = file::parse(&text, &mut |entry| key.set(&mut config, &entry.found));
                assert_eq!(set, Ok(()), "{text}");
                assert_eq!(key.shown(&config), Some(shown));
            }
        }
    }
}
