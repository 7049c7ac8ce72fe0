//! The policy of a node: who may do what, and what a person is asked about.

mod trust_keys;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use asp::escrow::{EscrowCeilings, LevelCeilings};
use asp::trust::{CircuitBreakerParameters, PeerLimits, TrustParameters};
use asp::{AgentUri, Amount, Currency};
use seal::json::Tape;
use seal::{Jwk, describe_io_error, es256};
use thiserror::Error;
use toml::de::{DeTable, DeValue};

use crate::limits::NodeLimits;

/// The policy.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The lowest score with which an agent can open a session with this node's agent.
    pub trust_threshold: f64,
    /// Signed endorsements of peers by other agents.
    pub endorsements: Vec<String>,
    /// The constants of the trust computation.
    pub trust: TrustParameters,
    /// How many messages and invitations an agent may send, by its trust level.
    pub peer_limits: PeerLimits,
    /// When a peer that does not answer is left alone for a while.
    pub circuit_breaker: CircuitBreakerParameters,
    /// What a person is asked about.
    pub consent: ConsentPolicy,
    /// Whether a person of the other side must have agreed, too.
    pub peer_consent: PeerConsentPolicy,
    /// Agents whose cards are no longer accepted.
    pub revoked: HashSet<AgentUri>,
    /// The highest escrow, by trust level.
    pub escrow_ceilings: EscrowCeilings,
    /// The limits of the node.
    pub limits: NodeLimits,
    /// The money that agents have deposited with the operator of this node.
    pub deposits: Vec<(AgentUri, Amount, Currency)>,
}

/// What a person is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsentPolicy {
    /// Ask before a COMMIT is sent.
    pub commit: bool,
    /// Ask before a commitment of the other side is accepted.
    pub accept: bool,
    /// Ask about an escalation of this node's agent.
    pub escalate: bool,
    /// Ask about a dispute that the rules do not decide.
    pub dispute: bool,
    /// How long the person has to answer.
    pub timeout: Duration,
}

/// Whether a person of the other side must have agreed to what binds it.
#[derive(Clone, Debug, Default)]
pub struct PeerConsentPolicy {
    /// A COMMIT of a peer, and its ACCEPT of a commitment, must have the consent of a person (D24).
    pub is_required: bool,
    /// The keys of the hubs that ask the person of each peer.
    pub hub_keys: HashMap<AgentUri, Vec<es256::VerifyingKey>>,
    /// The files with these keys, until [`Policy::load`] reads them.
    key_files: Vec<(AgentUri, String)>,
}

impl ConsentPolicy {
    /// A person is asked in every case.
    pub const ASK: Self =
        Self { commit: true, accept: true, escalate: true, dispute: true, timeout: Duration::from_mins(10) };
    /// Nobody is asked.
    pub const NEVER_ASK: Self = Self {
        commit: false,
        accept: false,
        escalate: false,
        dispute: false,
        timeout: Duration::from_mins(10),
    };
}

/// Why a policy cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// The file cannot be read.
    #[error("{path}: {reason}", path = .0.display(), reason = describe_io_error(.1))]
    File(PathBuf, #[source] std::io::Error),
    /// The file is not valid.
    #[error("{path}: {1}", path = .0.display())]
    Invalid(PathBuf, String),
}

impl Policy {
    /// The policy of a node without a policy file.
    pub fn new(consent: ConsentPolicy) -> Self {
        Self {
            trust_threshold: 0.0,
            endorsements: Vec::new(),
            trust: TrustParameters::default(),
            peer_limits: PeerLimits::default(),
            circuit_breaker: CircuitBreakerParameters::default(),
            consent,
            peer_consent: PeerConsentPolicy::default(),
            revoked: HashSet::new(),
            escrow_ceilings: EscrowCeilings::default(),
            limits: NodeLimits::default(),
            deposits: Vec::new(),
        }
    }

    /// Reads a policy file. Keys that are absent keep their defaults.
    pub fn load(path: &Path, consent: ConsentPolicy) -> Result<Self, PolicyError> {
        let text =
            std::fs::read_to_string(path).map_err(|error| PolicyError::File(path.to_owned(), error))?;
        let mut policy =
            Self::parse(&text, consent).map_err(|reason| PolicyError::Invalid(path.to_owned(), reason))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        for endorsement in &mut policy.endorsements {
            let file = folder.join(&*endorsement);
            *endorsement = std::fs::read_to_string(&file).map_err(|error| PolicyError::File(file, error))?;
        }
        for (agent, file) in std::mem::take(&mut policy.peer_consent.key_files) {
            let file = folder.join(file);
            let text =
                std::fs::read_to_string(&file).map_err(|error| PolicyError::File(file.clone(), error))?;
            let key = read_hub_key(&text);
            let key = key.ok_or_else(|| {
                PolicyError::Invalid(file, "it is not a public P-256 key as JWK".to_owned())
            })?;
            policy.peer_consent.hub_keys.entry(agent).or_default().push(key);
        }
        Ok(policy)
    }

    /// Parses a policy. [`Self::endorsements`] then contains the names of the files, and the keys of hubs are not read.
    pub fn parse(text: &str, consent: ConsentPolicy) -> Result<Self, String> {
        let table = DeTable::parse(text).map_err(|error| error.message().trim().replace('\n', "; "))?;
        let mut policy = Self::new(consent);
        for (section, value) in table.get_ref() {
            let section = section.get_ref();
            let DeValue::Table(members) = value.get_ref() else {
                return Err(format!("{section} must be a table"));
            };
            for (name, value) in members {
                let name = name.get_ref();
                policy
                    .set(section, name, value.get_ref())
                    .map_err(|expected| format!("{section}.{name} {expected}"))?;
            }
        }
        policy.trust.validate().map_err(|error| error.to_string())?;
        if policy.limits.session.max_session_bytes < policy.limits.session.max_message_bytes {
            return Err("limits.session_bytes is smaller than limits.message_bytes".to_owned());
        }
        if policy.limits.retry_delay > policy.limits.max_retry_delay {
            return Err("limits.retry_delay_ms is larger than limits.max_retry_delay_ms".to_owned());
        }
        Ok(policy)
    }

    fn set(&mut self, section: &str, name: &str, value: &DeValue<'_>) -> Result<(), String> {
        let boolean = || match value {
            DeValue::Boolean(flag) => Ok(*flag),
            _ => Err("must be true or false"),
        };
        let number = || read_number(value).ok_or("must be a number");
        let count = || {
            let count = read_count(value).filter(|count| *count > 0);
            count.ok_or_else(|| format!("must be a whole number from 1 to {}", u32::MAX))
        };
        match (section, name) {
            ("consent", "commit") => self.consent.commit = boolean()?,
            ("consent", "accept") => self.consent.accept = boolean()?,
            ("consent", "escalate") => self.consent.escalate = boolean()?,
            ("consent", "dispute") => self.consent.dispute = boolean()?,
            ("consent", "required_of_peers") => self.peer_consent.is_required = boolean()?,
            ("consent", "peer_hub_keys") => {
                let expected = "must be a list of tables with agent and file";
                for entry in items(value).ok_or(expected)? {
                    self.peer_consent.key_files.push(read_key_file(entry).ok_or(expected)?);
                }
            }
            ("consent", "timeout_seconds") => {
                self.consent.timeout = Duration::from_secs(count()?.into());
            }
            ("trust", "threshold") => {
                let threshold = number()?;
                if !(0.0..=100.0).contains(&threshold) {
                    return Err("must be from 0 to 100".to_owned());
                }
                self.trust_threshold = threshold;
            }
            ("trust", "endorsements") => {
                let expected = "must be a list of file names";
                for file in items(value).ok_or(expected)? {
                    self.endorsements.push(file.as_str().ok_or(expected)?.to_owned());
                }
            }
            ("limits", "messages_per_minute") => {
                let numbers = per_level(value)?;
                let levels = self.peer_limits.by_level.iter_mut();
                levels.zip(numbers).for_each(|(level, number)| level.messages_per_minute = number);
            }
            ("limits", "invitations_per_minute") => {
                let numbers = per_level(value)?;
                let levels = self.peer_limits.by_level.iter_mut();
                levels.zip(numbers).for_each(|(level, number)| level.invitations_per_minute = number);
            }
            ("limits", "bytes_per_minute") => {
                let numbers = per_level(value)?;
                let levels = self.peer_limits.by_level.iter_mut();
                levels.zip(numbers).for_each(|(level, number)| level.bytes_per_minute = number);
            }
            ("limits", "sessions") => self.limits.sessions = count()? as usize,
            ("limits", "sessions_per_peer") => self.limits.sessions_per_peer = count()? as usize,
            ("limits", "pinned_cards") => self.limits.pinned_cards = count()? as usize,
            ("limits", "registered_cards") => self.limits.registered_cards = count()? as usize,
            ("limits", "remembered_proofs") => self.limits.remembered_proofs = count()? as usize,
            ("limits", "message_bytes") => self.limits.session.max_message_bytes = count()? as usize,
            ("limits", "messages_per_session") => self.limits.session.max_messages = count()? as usize,
            ("limits", "session_bytes") => self.limits.session.max_session_bytes = count()? as usize,
            ("limits", "open_proposals") => self.limits.session.max_open_proposals = count()? as usize,
            ("limits", "violations_per_minute") => self.limits.violations_per_minute = count()?,
            ("limits", "violations_per_day") => self.limits.violations_per_day = count()?,
            ("limits", "refusals_per_session") => self.limits.refusals_per_session = count()? as usize,
            ("limits", "registrations_per_minute") => self.limits.registrations_per_minute = count()?,
            ("limits", "kept_ended_sessions") => self.limits.kept_ended_sessions = count()? as usize,
            ("limits", "ended_session_days") => {
                self.limits.ended_session_retention = Duration::from_hours(u64::from(count()?) * 24);
            }
            ("limits", "listed_ended_sessions") => self.limits.listed_ended_sessions = count()? as usize,
            ("limits", "peer_timeout_ms") => self.limits.peer_timeout = millis(count()?),
            ("limits", "retry_delay_ms") => self.limits.retry_delay = millis(count()?),
            ("limits", "max_retry_delay_ms") => self.limits.max_retry_delay = millis(count()?),
            ("limits", "delivery_timeout_seconds") => {
                self.limits.delivery_timeout = Duration::from_secs(count()?.into());
            }
            ("circuit_breaker", "failure_threshold") => {
                self.circuit_breaker.failure_threshold = count()?;
            }
            ("circuit_breaker", "open_ms") => self.circuit_breaker.open_ms = count()?.into(),
            ("circuit_breaker", "max_open_ms") => self.circuit_breaker.max_open_ms = count()?.into(),
            ("circuit_breaker", "trial_timeout_ms") => {
                self.circuit_breaker.trial_timeout_ms = count()?.into();
            }
            ("cards", "revoked") => {
                for agent in items(value).ok_or("must be a list of agent URIs")? {
                    let agent = agent.as_str().and_then(|text| AgentUri::parse(text).ok());
                    self.revoked.insert(agent.ok_or("must be a list of agent URIs")?);
                }
            }
            ("escrow", "ceilings") => {
                let expected = "must be a list of five amounts as strings, for the trust levels 0 to 4";
                self.escrow_ceilings.any_currency = read_ceilings(value).ok_or(expected)?;
            }
            ("escrow", "ceilings_by_currency") => {
                let expected = "must be a table of currencies, each with a list of five amounts as strings";
                let DeValue::Table(currencies) = value else { return Err(expected.to_owned()) };
                for (currency, ceilings) in currencies {
                    let currency = Currency::parse(currency.get_ref()).map_err(|_| expected)?;
                    let ceilings = read_ceilings(ceilings.get_ref()).ok_or(expected)?;
                    self.escrow_ceilings.by_currency.insert(currency, ceilings);
                }
            }
            ("escrow", "deposits") => {
                let expected = "must be a list of tables with agent, amount and currency";
                for deposit in items(value).ok_or(expected)? {
                    self.deposits.push(read_deposit(deposit).ok_or(expected)?);
                }
            }
            ("trust", name) if trust_keys::set(&mut self.trust, name, value)? => {}
            _ => return Err("is not known".to_owned()),
        }
        Ok(())
    }
}

fn items<'v>(value: &'v DeValue<'v>) -> Option<impl Iterator<Item = &'v DeValue<'v>>> {
    match value {
        DeValue::Array(items) => Some(items.iter().map(toml::Spanned::get_ref)),
        _ => None,
    }
}

fn read_number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Float(number) => number.as_str().parse().ok(),
        DeValue::Integer(number) => i32::from_str_radix(number.as_str(), number.radix()).ok().map(f64::from),
        _ => None,
    }
}

fn read_count(value: &DeValue<'_>) -> Option<u32> {
    match value {
        DeValue::Integer(number) => u32::from_str_radix(number.as_str(), number.radix()).ok(),
        _ => None,
    }
}

fn read_ceilings(value: &DeValue<'_>) -> Option<LevelCeilings> {
    // An amount is positive, so "0" stands for no escrow at all.
    let ceiling = |item: &DeValue<'_>| match item.as_str()? {
        "0" => Some(None),
        text => Amount::parse(text).ok().map(Some),
    };
    let ceilings = items(value)?.map(ceiling).collect::<Option<Vec<Option<Amount>>>>()?;
    LevelCeilings::try_from(ceilings).ok()
}

fn read_key_file(value: &DeValue<'_>) -> Option<(AgentUri, String)> {
    let DeValue::Table(members) = value else { return None };
    let text = |name: &str| members.get(name)?.get_ref().as_str();
    Some((AgentUri::parse(text("agent")?).ok()?, text("file")?.to_owned()))
}

/// Reads the public key of a hub.
fn read_hub_key(text: &str) -> Option<es256::VerifyingKey> {
    let mut tape = Tape::default();
    match tape.read(text).ok().and_then(|doc| Jwk::read(&doc.root()).ok())? {
        Jwk::P256(key) => Some(key),
        _ => None,
    }
}

fn read_deposit(value: &DeValue<'_>) -> Option<(AgentUri, Amount, Currency)> {
    let DeValue::Table(members) = value else { return None };
    let text = |name: &str| members.get(name)?.get_ref().as_str();
    Some((
        AgentUri::parse(text("agent")?).ok()?,
        Amount::parse(text("amount")?).ok()?,
        Currency::parse(text("currency")?).ok()?,
    ))
}

fn per_level(value: &DeValue<'_>) -> Result<[u32; 5], String> {
    let numbers = items(value).and_then(|items| items.map(read_count).collect::<Option<Vec<u32>>>());
    numbers
        .and_then(|numbers| <[u32; 5]>::try_from(numbers).ok())
        .ok_or_else(|| "must be a list of five numbers, for the trust levels 0 to 4".to_owned())
}

fn millis(number: u32) -> Duration {
    Duration::from_millis(number.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_file_is_read() {
        let text = r#"
            [consent]
            commit = true
            accept = false
            timeout_seconds = 60
            [trust]
            threshold = 40
            level_boundaries = [10, 20.5, 30, 40]
            [limits]
            messages_per_minute = [1, 2, 3, 4, 5]
            invitations_per_minute = [1, 2, 3, 4, 5]
            [circuit_breaker]
            failure_threshold = 3
            open_ms = 10
            max_open_ms = 20
            [cards]
            revoked = ["agent://evil.example/x"]
            [escrow]
            deposits = [{ agent = "agent://a.example/b", amount = "10.00", currency = "EUR" }]
        "#;
        let policy = Policy::parse(text, ConsentPolicy::NEVER_ASK);
        let policy = policy.unwrap_or_else(|error| panic!("{error}"));
        assert!(policy.consent.commit && !policy.consent.accept);
        assert_eq!(policy.consent.timeout, Duration::from_mins(1));
        assert!((policy.trust_threshold - 40.0).abs() < f64::EPSILON);
        assert_eq!(policy.peer_limits.by_level[4].messages_per_minute, 5);
        assert_eq!((policy.circuit_breaker.failure_threshold, policy.circuit_breaker.max_open_ms), (3, 20));
        assert_eq!((policy.revoked.len(), policy.deposits.len()), (1, 1));
    }

    #[test]
    fn an_error_names_the_faulty_key() {
        for (text, expected) in [
            ("[trust]\nthreshold = 200", "trust.threshold must be from 0 to 100"),
            ("[consent]\ncomit = true", "consent.comit is not known"),
            (
                "[limits]\nmessages_per_minute = [1]",
                "limits.messages_per_minute must be a list of five numbers",
            ),
            ("consent = 1", "consent must be a table"),
            ("[limits]\nsessions = 0", "limits.sessions must be a whole number from 1 to 4294967295"),
            (
                "[limits]\nsessions = 5000000000",
                "limits.sessions must be a whole number from 1 to 4294967295",
            ),
            ("[limits]\nsession_bytes = 262143", "limits.session_bytes is smaller than limits.message_bytes"),
            (
                "[limits]\nretry_delay_ms = 60001",
                "limits.retry_delay_ms is larger than limits.max_retry_delay_ms",
            ),
        ] {
            let error = Policy::parse(text, ConsentPolicy::ASK).err().unwrap_or_default();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    /// The policy file in docs/asp.md has every key, with its default.
    #[test]
    fn the_documentation_lists_every_key_with_its_default() {
        let page = include_str!("../../../docs/asp.md");
        let section = page.split("## The policy file").nth(1).unwrap_or_default();
        let documented = section.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
        let documented = documented.unwrap_or_default();
        let policy = Policy::parse(documented, ConsentPolicy::NEVER_ASK);
        let policy = policy.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(format!("{policy:?}"), format!("{:?}", Policy::new(ConsentPolicy::ASK)));
        let arms_of = |source: &'static str, prefix: &'static str| {
            let source = source.split("#[cfg(test)]").next().unwrap_or_default();
            source.lines().filter_map(move |line| line.trim_start().strip_prefix(prefix))
        };
        let keys = arms_of(include_str!("policy.rs"), "(\"").filter_map(|arm| {
            let mut words = arm.split('"');
            Some((words.next()?, words.nth(1)?))
        });
        let is_key = |name: &&str| !name.contains(' ');
        let trust_keys = arms_of(include_str!("policy/trust_keys.rs"), "\"").map(|arm| arm.split('"').next());
        let trust_keys = trust_keys.flatten().filter(is_key).map(|key| ("trust", key));
        let keys: Vec<_> = keys.chain(trust_keys).collect();
        assert!(keys.len() > 50, "the keys are no longer recognised: {keys:?}");
        for (section, key) in keys {
            let table = documented.split(&format!("[{section}]")).nth(1).unwrap_or_default();
            let table = table.split("\n[").next().unwrap_or_default();
            assert!(
                table.lines().any(|line| line.starts_with(&format!("{key} = ")))
                    || documented.contains(&format!("\n[{section}.{key}]")),
                "{section}.{key} is not in docs/asp.md"
            );
        }
    }
}
