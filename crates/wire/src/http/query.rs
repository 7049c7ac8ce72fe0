//! Query parameters: only known ones, each at most once.

use thiserror::Error;

use super::{HttpResponse, RequestHead, StatusCode};

/// Decoded query parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueryString(Vec<(String, String)>);

/// Why a query is rejected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum QueryError {
    /// The parameter is unknown.
    #[error("unknown parameter {name:?}{}", suggestion.map(|known| format!(" (did you mean {known}?)")).unwrap_or_default())]
    Unknown {
        /// The parameter.
        name: String,
        /// The parameter that is probably meant.
        suggestion: Option<&'static str>,
    },
    /// The parameter is repeated.
    #[error("the parameter {0:?} is repeated")]
    Repeated(String),
    /// A percent escape is invalid, or does not decode to UTF-8.
    #[error(
        "each percent sign must be followed by two hexadecimal digits, and the decoded text must be UTF-8"
    )]
    Escape,
}

impl QueryString {
    /// Parses query parameters. Only names in `known` are allowed.
    pub fn parse(text: Option<&str>, known: &[&'static str]) -> Result<Self, QueryError> {
        let mut parameters: Vec<(String, String)> = Vec::new();
        for pair in text.unwrap_or("").split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decode(name)?, decode(value)?);
            if !known.contains(&name.as_str()) {
                let name: String = name.chars().take(64).collect();
                let suggestion = seal::closest_name(&name, known.iter().copied());
                return Err(QueryError::Unknown { name, suggestion });
            }
            if parameters.iter().any(|(key, _)| *key == name) {
                return Err(QueryError::Repeated(name));
            }
            parameters.push((name, value));
        }
        Ok(Self(parameters))
    }

    /// Returns the value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

impl RequestHead {
    /// Parses the query parameters of the request. Only names in `known` are allowed. Returns the response if the query is
    /// invalid.
    pub fn parse_query(&self, known: &[&'static str]) -> Result<QueryString, HttpResponse> {
        QueryString::parse(self.query.as_deref(), known)
            .map_err(|error| HttpResponse::problem(StatusCode::BadRequest, &format!("{error}.")))
    }
}

fn decode(text: &str) -> Result<String, QueryError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16));
                let (high, low) = (digit().ok_or(QueryError::Escape)?, digit().ok_or(QueryError::Escape)?);
                bytes.push(u8::try_from(high << 4 | low).map_err(|_| QueryError::Escape)?);
            }
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).map_err(|_| QueryError::Escape)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_parameters_are_accepted_once_each() {
        let known = ["subscription_id", "wait"];
        let query = QueryString::parse(Some("subscription_id=sub_1&wait=%32%35"), &known).unwrap();
        assert_eq!((query.get("subscription_id"), query.get("wait")), (Some("sub_1"), Some("25")));
        assert_eq!(QueryString::parse(None, &known), Ok(QueryString::default()));
        assert_eq!(
            QueryString::parse(Some("wait=1&wait=1"), &known),
            Err(QueryError::Repeated("wait".into()))
        );
        assert_eq!(
            QueryString::parse(Some("token=1"), &known),
            Err(QueryError::Unknown { name: "token".into(), suggestion: None })
        );
        for wrong in ["wait=%", "wait=%4", "wait=%zz", "wait=%ff"] {
            assert_eq!(QueryString::parse(Some(wrong), &known), Err(QueryError::Escape), "{wrong}");
        }
    }
}
