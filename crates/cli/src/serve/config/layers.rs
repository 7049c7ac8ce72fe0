//! The sources of values, lowest precedence first: default, file, environment, flag.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Command, Error};

use super::keys::{ConfigKey, KEYS};
use super::value::{MIB, RawValue, ValueKind};
use super::{Config, toml_file};
use crate::hub_args::DEFAULT_SOCKET_KEYWORD;

/// The variable that names the configuration file.
const CONFIG_VARIABLE: &str = "SAYSO_CONFIG";
/// Prefix of the variables that this project's tests use.
const TEST_VARIABLE_PREFIX: &str = "SAYSO_TEST_";
/// Variables for agents and listeners (address of the hub, token). They are not settings of the hub.
const CLIENT_VARIABLES: [&str; 2] = ["SAYSO_URL", "SAYSO_TOKEN"];
/// Heading of the limits in the help, which only `--help-limits` shows.
pub(crate) const LIMITS_HEADING: &str = "Limits";
/// The default address and data folder of an ASP node.
const NODE_ADDRESS: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 8788);
const NODE_DATA_FOLDER: &str = "sayso-asp-data";
/// The keys and the sections of keys that an ASP node uses.
const NODE_KEYS: [&str; 12] = [
    "listen",
    "data",
    "memory",
    "tokens",
    "open",
    "host",
    "tls_cert",
    "tls_key",
    "behind_proxy",
    "threads",
    "messages.websocket_bytes",
    "messages.write_timeout",
];
const NODE_SECTIONS: [&str; 3] = ["http", "journal", "backup"];
const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// How much data a personal hub keeps by default, and for how long: events, and the person's decisions.
const PERSONAL_BYTES: u64 = 1024 * MIB;
const PERSONAL_EVENT_AGE_MS: i64 = 30 * DAY_MS;
const PERSONAL_DECISION_AGE_MS: i64 = 365 * DAY_MS;
/// Name of the configuration file in the data folder, which is read if no other file is given.
const DEFAULT_FILE_NAME: &str = "sayso.toml";

/// How much data a hub with `--memory` keeps by default.
const MEMORY_BYTES: u64 = 256 * MIB;
/// How long a hub with `--memory` keeps ended sessions by default.
const MEMORY_AGE_MS: i64 = 60 * 60 * 1000;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ValueOrigin {
    Default,
    File(PathBuf, usize),
    Environment(String),
    Flag(String),
}

impl fmt::Display for ValueOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path, line) => write!(f, "{}:{line}", path.display()),
            Self::Environment(name) => f.write_str(name),
            Self::Flag(name) => write!(f, "--{name}"),
        }
    }
}

impl ValueOrigin {
    fn precedence(&self) -> u8 {
        match self {
            Self::Default => 0,
            Self::File(..) => 1,
            Self::Environment(_) => 2,
            Self::Flag(_) => 3,
        }
    }
}

/// The flags on the command line: the name of each key, and its values.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConfigFlags(Vec<(&'static str, Vec<OsString>)>);

impl ConfigFlags {
    /// Sets a key, if there is a value.
    pub(crate) fn set(&mut self, name: &'static str, value: Option<impl Into<OsString>>) {
        self.set_all(name, value.into_iter().map(Into::into).collect());
    }

    /// Sets a key that can have several values.
    pub(crate) fn set_all(&mut self, name: &'static str, values: Vec<OsString>) {
        if !values.is_empty() {
            self.0.push((name, values));
        }
    }
}

impl clap::Args for ConfigFlags {
    fn augment_args(command: Command) -> Command {
        let defaults = Config::default();
        command.args(KEYS.iter().map(|key| {
            let arg = Arg::new(key.name).long(key.flag()).value_parser(clap::value_parser!(OsString));
            let mut help = key.description.trim_end_matches('.').to_owned();
            if !matches!(key.kind, ValueKind::Flag | ValueKind::List)
                && let Some(default) = key.to_toml(&defaults)
            {
                help = format!("{help} [default: {}]", default.trim_matches('"'));
            }
            let arg = match key.kind {
                ValueKind::Address => arg.value_name("ADDR"),
                ValueKind::Path => arg.value_name("PATH"),
                ValueKind::List => arg.value_name("HOST").action(ArgAction::Append),
                ValueKind::Language => arg.value_name("TAG"),
                ValueKind::Name => arg.value_name("NAME"),
                ValueKind::Database => arg.value_name("URL"),
                ValueKind::Count(..) => arg.value_name("COUNT"),
                ValueKind::Bytes(..) => arg.value_name("BYTES"),
                ValueKind::Time(..) => arg.value_name("DURATION"),
                ValueKind::Flag => arg
                    .value_name("BOOL")
                    .num_args(0..=1)
                    .require_equals(true)
                    .default_missing_value("true")
                    .hide_possible_values(true),
            };
            let arg = if key.is_limit() { arg.help_heading(LIMITS_HEADING).hide(true) } else { arg };
            arg.help(help)
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for ConfigFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        for key in KEYS {
            if let Some(values) = matches.get_many::<OsString>(key.name) {
                self.0.push((key.name, values.cloned().collect()));
            }
        }
        Ok(())
    }
}

/// The effective configuration, with the source of each value.
pub(crate) struct LoadedConfig {
    pub(crate) config: Config,
    origins: Vec<ValueOrigin>,
}

impl LoadedConfig {
    /// Merges all sources. `named_file` is the file named by `--config`. Does not check for contradictions.
    pub(crate) fn load(flags: &ConfigFlags, named_file: Option<&Path>) -> Result<Self, String> {
        let variables = hub_variables()?;
        let mut overrides = Self::default();
        overrides.add_environment_and_flags(&variables, flags)?;
        overrides.set_personal_defaults()?;
        let mut loaded = Self::default();
        let file_from_environment =
            variables.iter().find(|(name, _)| name == CONFIG_VARIABLE).map(|(_, value)| PathBuf::from(value));
        if let Some(path) = named_file.map(Path::to_owned).or(file_from_environment) {
            loaded.add_file(&path, true)?;
        } else if !overrides.config.memory {
            loaded.add_file(&overrides.config.data.join(DEFAULT_FILE_NAME), false)?;
        }
        loaded.add_environment_and_flags(&variables, flags)?;
        loaded.set_personal_defaults()?;
        loaded.set_dependent_defaults();
        Ok(loaded)
    }

    /// Returns the configuration of a personal hub that a listener runs in its own process.
    pub(crate) fn load_personal() -> Result<Self, String> {
        Self::load(&ConfigFlags(vec![("personal", vec!["true".into()])]), None)
    }

    /// Returns the configuration of an ASP node. The environment variables are settings of a hub, which may run on the same
    /// machine, so they have no effect.
    pub(crate) fn load_node(flags: &ConfigFlags, file: Option<&Path>) -> Result<Self, String> {
        let mut loaded = Self::default();
        loaded.config.listen = NODE_ADDRESS.into();
        loaded.config.data = NODE_DATA_FOLDER.into();
        if let Some(path) = file {
            loaded.add_file(path, true)?;
        }
        loaded.add_environment_and_flags(&[], flags)?;
        let unused = KEYS.iter().zip(&loaded.origins).find(|(key, origin)| {
            **origin != ValueOrigin::Default
                && !NODE_KEYS.contains(&key.name)
                && !key.name.split_once('.').is_some_and(|(section, _)| NODE_SECTIONS.contains(&section))
        });
        if let Some((key, origin)) = unused {
            return Err(format!("{origin}: {} has no effect on an ASP node", key.name));
        }
        match loaded.contradictions().into_iter().next() {
            Some(contradiction) => Err(contradiction),
            None => Ok(loaded),
        }
    }

    pub(super) fn origin(&self, name: &str) -> &ValueOrigin {
        let index = KEYS.iter().position(|key| key.name == name);
        index.and_then(|index| self.origins.get(index)).unwrap_or(&ValueOrigin::Default)
    }

    fn add_file(&mut self, path: &Path, is_named: bool) -> Result<(), String> {
        let Some(text) = toml_file::read(path)? else {
            return if is_named { Err(format!("{}: file not found", path.display())) } else { Ok(()) };
        };
        let parsed = toml_file::parse(&text, &mut |entry| {
            let key = ConfigKey::find(&entry.name).ok_or_else(|| {
                let prefix = format!("{}.", entry.name);
                if KEYS.iter().any(|key| key.name.starts_with(&prefix)) {
                    return format!("{} is a section; put its keys below [{}]", entry.name, entry.name);
                }
                let hint = suggest(&entry.name, KEYS.iter().map(|key| key.name.to_owned()));
                format!("unknown key {}{hint}", crate::output::printable(&entry.name))
            })?;
            if !is_named && key.name == "data" {
                return Err("data: a file inside the data folder cannot set it; use --config FILE or --data"
                    .to_owned());
            }
            self.set_value(key, &entry.value, ValueOrigin::File(path.to_owned(), entry.line))
                .map_err(|error| format!("{}: {error}", key.name))
        });
        parsed.map_err(|(line, error)| format!("{}:{line}: {error}", path.display()))
    }

    fn add_environment_and_flags(
        &mut self,
        variables: &[(String, OsString)],
        flags: &ConfigFlags,
    ) -> Result<(), String> {
        for (name, value) in variables.iter().filter(|(name, _)| name != CONFIG_VARIABLE) {
            let key = KEYS.iter().find(|key| key.variable() == *name).ok_or_else(|| {
                let hint =
                    suggest(name, KEYS.iter().map(ConfigKey::variable).chain([CONFIG_VARIABLE.to_owned()]));
                format!("{}: unknown setting{hint}", crate::output::printable(name))
            })?;
            self.set_value(
                key,
                &RawValue::Strings(vec![value.as_os_str()]),
                ValueOrigin::Environment(name.clone()),
            )
            .map_err(|error| format!("{name}: {error}"))?;
        }
        for (key, values) in
            flags.0.iter().filter_map(|(name, values)| Some((ConfigKey::find(name)?, values)))
        {
            let values = values.iter().map(OsString::as_os_str).collect::<Vec<&OsStr>>();
            self.set_value(key, &RawValue::Strings(values), ValueOrigin::Flag(key.flag()))
                .map_err(|error| format!("--{}: {error}", key.flag()))?;
        }
        Ok(())
    }

    fn set_value(
        &mut self,
        key: &ConfigKey,
        value: &RawValue<'_>,
        origin: ValueOrigin,
    ) -> Result<(), String> {
        key.set(&mut self.config, value)?;
        let index = KEYS.iter().position(|other| other.name == key.name);
        if let Some(current) = index.and_then(|index| self.origins.get_mut(index)) {
            *current = origin;
        }
        Ok(())
    }

    /// Sets the defaults of a personal hub.
    fn set_personal_defaults(&mut self) -> Result<(), String> {
        if !self.config.personal {
            return Ok(());
        }
        let [has_default_data, has_default_socket, has_default_address] =
            ["data", "unix", "listen"].map(|name| *self.origin(name) == ValueOrigin::Default);
        if has_default_address {
            // Another user could wait at a port that is known in advance, and put a page into the person's browser that
            // later has the same origin as the hub's.
            self.config.listen.set_port(0);
        }
        if has_default_data {
            self.config.data = user_data_folder()?;
        }
        if has_default_socket {
            self.config.unix = Some(DEFAULT_SOCKET_KEYWORD.into());
        }
        Ok(())
    }

    /// Sets the defaults that depend on other values.
    fn set_dependent_defaults(&mut self) {
        let is_default = |name| *self.origin(name) == ValueOrigin::Default;
        let (has_default_event_age, has_default_decision_age, has_default_bytes) = (
            is_default("retention.events"),
            is_default("retention.decisions"),
            is_default("retention.bytes"),
        );
        self.config.has_configured_shards = !is_default("hub.shards");
        let journal_bytes = self.config.journal.max_bytes;
        let retention = &mut self.config.hub.retention;
        if has_default_bytes {
            retention.max_bytes = journal_bytes.map(|max_bytes| max_bytes / 2);
        }
        // Memory is scarcer than disk space, and nobody expects a hub in memory to keep an archive. On a person's own
        // machine nobody looks after the disk, and nobody expects that everything agents said is kept forever.
        let (bytes, event_age_ms, decision_age_ms) = match (self.config.memory, self.config.personal) {
            (true, _) => (MEMORY_BYTES, MEMORY_AGE_MS, MEMORY_AGE_MS),
            (false, true) => (PERSONAL_BYTES, PERSONAL_EVENT_AGE_MS, PERSONAL_DECISION_AGE_MS),
            (false, false) => return,
        };
        if has_default_bytes {
            let max_bytes = retention.max_bytes.filter(|_| !self.config.memory);
            retention.max_bytes = Some(max_bytes.map_or(bytes, |max_bytes| max_bytes.min(bytes)));
        }
        for (is_default, age, default_age_ms) in [
            (has_default_event_age, &mut retention.max_event_age_ms, event_age_ms),
            (has_default_decision_age, &mut retention.max_decision_age_ms, decision_age_ms),
        ] {
            if is_default {
                *age = Some(default_age_ms);
            }
        }
    }

    /// Describes values that contradict each other.
    pub(crate) fn contradictions(&self) -> Vec<String> {
        let config = &self.config;
        let mut messages = Vec::new();
        let (memory, data) = (self.origin("memory"), self.origin("data"));
        if config.memory && memory.precedence() <= data.precedence() {
            messages.push(format!(
                "{memory}: everything is kept in memory, so the setting data ({data}) has no effect; use only one of them"
            ));
        }
        if config.memory && config.database.is_some() {
            let journal = self.origin("journal");
            messages.push(format!(
                "{memory}: everything is kept in memory, so the setting journal ({journal}) has no effect; use only one of them"
            ));
        }
        if config.open && config.tokens.is_some() {
            let (open, tokens) = (self.origin("open"), self.origin("tokens"));
            messages.push(format!(
                "{open}: no token is required, so {tokens} has no effect; use only one of them"
            ));
        }
        if config.cluster && config.database.is_none() {
            messages.push(format!(
                "{}: the nodes of a cluster share a journal in Postgres; name it with --journal",
                self.origin("cluster")
            ));
        }
        for name in ["cluster_node", "cluster_listen", "cluster_address"] {
            if !config.cluster && *self.origin(name) != ValueOrigin::Default {
                messages.push(format!("{}: it has no effect without --cluster", self.origin(name)));
            }
        }
        for other in [
            "memory",
            "tokens",
            "personal",
            "unix",
            "grpc_listen",
            "otlp_listen",
            "stdio",
            "compat",
            "demo_agent",
        ] {
            if config.cluster && *self.origin(other) != ValueOrigin::Default {
                let (cluster, origin) = (self.origin("cluster"), self.origin(other));
                messages.push(format!("{cluster}: a node of a cluster cannot be combined with {origin}"));
            }
        }
        for other in ["open", "tokens", "behind_proxy"] {
            if config.personal && *self.origin(other) != ValueOrigin::Default {
                let (personal, origin) = (self.origin("personal"), self.origin(other));
                messages.push(format!(
                    "{personal}: a personal hub serves only its own user, so {origin} does not fit; use only one of them"
                ));
            }
        }
        for (given, missing, name) in [
            (&config.tls_cert, &config.tls_key, ["tls_cert", "tls_key"]),
            (&config.tls_key, &config.tls_cert, ["tls_key", "tls_cert"]),
            (&config.tls_client_ca, &config.tls_cert, ["tls_client_ca", "tls_cert"]),
        ] {
            if given.is_some() && missing.is_none() {
                let (origin, [_, other]) = (self.origin(name[0]), name);
                messages.push(format!("{origin}: TLS also needs --{}", other.replace('_', "-")));
            }
        }
        if let (Some(retained), Some(maximum)) = (config.hub.retention.max_bytes, config.journal.max_bytes)
            && retained > maximum
            && !config.memory
        {
            let (retained_origin, maximum_origin) =
                (self.origin("retention.bytes"), self.origin("journal.max_bytes"));
            messages.push(format!(
                "{retained_origin}: retention.bytes is larger than journal.max_bytes (set by {maximum_origin}), so the journal would be full before anything is deleted"
            ));
        }
        messages
    }
}

impl Default for LoadedConfig {
    fn default() -> Self {
        Self { config: Config::default(), origins: vec![ValueOrigin::Default; KEYS.len()] }
    }
}

/// Returns the folder for the data of a personal hub (XDG Base Directory Specification).
fn user_data_folder() -> Result<PathBuf, String> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = variable("XDG_DATA_HOME").or_else(|| variable("HOME").map(|home| home.join(".local/share")));
    let folder = folder.ok_or("no data folder: set HOME or XDG_DATA_HOME, or use --data DIR")?;
    Ok(folder.join("sayso"))
}

/// Returns the hub's environment variables, sorted by name.
fn hub_variables() -> Result<Vec<(String, OsString)>, String> {
    let mut variables = Vec::new();
    for (name, value) in std::env::vars_os() {
        let lossy = name.to_string_lossy();
        if lossy.starts_with("SAYSO_")
            && !lossy.starts_with(TEST_VARIABLE_PREFIX)
            && !CLIENT_VARIABLES.contains(&&*lossy)
        {
            let name = name
                .to_str()
                .ok_or_else(|| format!("{}: unknown setting", crate::output::printable(&lossy)))?;
            variables.push((name.to_owned(), value));
        }
    }
    variables.sort();
    Ok(variables)
}

/// Returns a hint: the most similar known name, or how to list all.
fn suggest(name: &str, known: impl Iterator<Item = String>) -> String {
    match seal::closest_name(name, known) {
        Some(known) => format!("; did you mean {known}?"),
        None => "; sayso serve --print-config lists all keys".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_and_variables_are_unique_and_defaults_are_valid() {
        let mut names: Vec<_> = KEYS.iter().flat_map(|key| [key.flag(), key.variable()]).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 2 * KEYS.len());
        for key in KEYS {
            let mut config = Config::default();
            if let Some(printed) = key.to_toml(&config) {
                let text = format!("{} = {printed}", key.name);
                let result = toml_file::parse(&text, &mut |entry| key.set(&mut config, &entry.value));
                assert_eq!(result, Ok(()), "{text}");
                assert_eq!(key.to_toml(&config), Some(printed));
            }
        }
    }
}
