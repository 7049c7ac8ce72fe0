//! The parameters of a target: known ones, each at most once.

use thiserror::Error;

/// Parameters, decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

/// Why a query is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadQuery {
    /// This parameter means nothing here.
    #[error("the parameter {0:?} is not known here")]
    Unknown(String),
    /// This parameter stands twice.
    #[error("the parameter {0:?} stands twice")]
    Repeated(String),
    /// An escape is none, or does not make text.
    #[error("a percent sign must be followed by two hexadecimal digits that make UTF-8")]
    Escape,
}

impl Query {
    /// Reads parameters, of which only these are known.
    pub fn parse(text: Option<&str>, known: &[&str]) -> Result<Self, BadQuery> {
        let mut read: Vec<(String, String)> = Vec::new();
        for pair in text.unwrap_or("").split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decode(name)?, decode(value)?);
            if !known.contains(&name.as_str()) {
                return Err(BadQuery::Unknown(name.chars().take(64).collect()));
            }
            if read.iter().any(|(key, _)| *key == name) {
                return Err(BadQuery::Repeated(name));
            }
            read.push((name, value));
        }
        Ok(Self(read))
    }

    /// The value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

fn decode(text: &str) -> Result<String, BadQuery> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16));
                let (high, low) = (digit().ok_or(BadQuery::Escape)?, digit().ok_or(BadQuery::Escape)?);
                bytes.push(u8::try_from(high << 4 | low).map_err(|_| BadQuery::Escape)?);
            }
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).map_err(|_| BadQuery::Escape)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_parameters_are_read_once_each() {
        let known = ["subscription_id", "wait"];
        let query = Query::parse(Some("subscription_id=sub_1&wait=%32%35"), &known).unwrap();
        assert_eq!((query.get("subscription_id"), query.get("wait")), (Some("sub_1"), Some("25")));
        assert_eq!(Query::parse(None, &known), Ok(Query::default()));
        assert_eq!(Query::parse(Some("wait=1&wait=1"), &known), Err(BadQuery::Repeated("wait".into())));
        assert_eq!(Query::parse(Some("token=1"), &known), Err(BadQuery::Unknown("token".into())));
        for wrong in ["wait=%", "wait=%4", "wait=%zz", "wait=%ff"] {
            assert_eq!(Query::parse(Some(wrong), &known), Err(BadQuery::Escape), "{wrong}");
        }
    }
}
