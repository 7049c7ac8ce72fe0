//! Arguments of a call that a server behind a URL also wants as headers (`x-mcp-header`, protocol 2026-07-28), so that what stands in
//! front of it can route by them.

use seal::json::{JsonKind, JsonValue};

/// What the name of such a header starts with.
const PREFIX: &str = "Mcp-Param-";
/// Maximum number of such arguments of one tool. If there are more, none is copied.
const MAX_PARAM_HEADERS: usize = 64;
/// Maximum depth of the schema that is examined.
const MAX_DEPTH: usize = 8;

/// A header, and where its value is in the arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ParamHeader {
    pub(crate) header: String,
    path: Vec<String>,
}

impl ParamHeader {
    /// Reads the annotations in the input schema of a tool. If one is invalid, none counts, because the server would not know what to
    /// expect either.
    pub(crate) fn read_all(schema: &JsonValue<'_>) -> Vec<Self> {
        let mut found = Vec::new();
        if collect(schema, &mut Vec::new(), &mut found).is_none() {
            found.clear();
        }
        found
    }

    /// Returns the value in the arguments, or `None` if there is none.
    pub(crate) fn value(&self, arguments: &JsonValue<'_>) -> Option<String> {
        let mut value = *arguments;
        for name in &self.path {
            value = value.member(name)?;
        }
        match value.kind() {
            JsonKind::Text => value.text().map(std::borrow::Cow::into_owned),
            JsonKind::Number => Some(value.source().to_owned()),
            _ => value.as_bool().map(|is_true| is_true.to_string()),
        }
    }
}

fn collect(schema: &JsonValue<'_>, path: &mut Vec<String>, found: &mut Vec<ParamHeader>) -> Option<()> {
    if path.len() > MAX_DEPTH {
        return Some(());
    }
    for (name, property) in schema.member("properties").into_iter().flat_map(|all| all.members()) {
        path.push(name.text()?.into_owned());
        if let Some(annotation) = property.member("x-mcp-header") {
            let header = format!("{PREFIX}{}", annotation.text().filter(|name| is_token(name))?);
            let is_known = found.iter().any(|other| other.header.eq_ignore_ascii_case(&header));
            let kind = property.member("type")?;
            let is_primitive =
                ["string", "integer", "boolean", "number"].iter().any(|name| kind.is_text(name));
            if is_known || !is_primitive || found.len() >= MAX_PARAM_HEADERS {
                return None;
            }
            found.push(ParamHeader { header, path: path.clone() });
        }
        collect(&property, path, found)?;
        path.pop();
    }
    Some(())
}

/// Whether a text can be a part of a header's name (RFC 9110, section 5.6.2).
fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

#[cfg(test)]
mod tests {
    use seal::json::Tape;

    use super::*;

    fn headers(properties: &str, arguments: &str) -> Vec<(String, String)> {
        let (mut tape, mut other) = (Tape::default(), Tape::default());
        let schema = format!(r#"{{"type":"object","properties":{properties}}}"#);
        let schema = tape.read(&schema).unwrap();
        let arguments = other.read(arguments).unwrap();
        let all = ParamHeader::read_all(&schema.root());
        all.iter().filter_map(|param| Some((param.header.clone(), param.value(&arguments.root())?))).collect()
    }

    #[test]
    fn annotated_arguments_become_headers() {
        let properties = r#"{"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"N"},
            "where":{"type":"object","properties":{"dry":{"type":"boolean","x-mcp-header":"Dry"}}},"other":{"type":"string"}}"#;
        let expected = [("Mcp-Param-Region", "eu"), ("Mcp-Param-N", "7"), ("Mcp-Param-Dry", "true")];
        let expected: Vec<_> = expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        assert_eq!(
            headers(properties, r#"{"region":"eu","n":7,"where":{"dry":true},"other":"x"}"#),
            expected
        );
        assert_eq!(headers(properties, r#"{"region":null,"where":1}"#), []);
    }

    #[test]
    fn one_invalid_annotation_makes_all_of_them_invalid() {
        for invalid in [
            r#"{"type":"string","x-mcp-header":"A b"}"#,
            r#"{"type":"string","x-mcp-header":""}"#,
            r#"{"type":"string","x-mcp-header":"A\r\nB: c"}"#,
            r#"{"type":"string","x-mcp-header":1}"#,
            r#"{"type":"array","x-mcp-header":"B"}"#,
            r#"{"type":"string","x-mcp-header":"REGION"}"#,
        ] {
            let properties =
                format!(r#"{{"region":{{"type":"string","x-mcp-header":"Region"}},"b":{invalid}}}"#);
            assert_eq!(headers(&properties, r#"{"region":"eu","b":"c"}"#), [], "{invalid}");
        }
    }
}
