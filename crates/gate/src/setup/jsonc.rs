//! JSON with comments: strict parsing, values that can be compared, and access that refuses ambiguous documents.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};

/// The mark that some editors write at the start of a file. The parser does not accept it.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// A JSON value. Members keep their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Json {
    Null,
    Boolean(bool),
    /// The number as it is written.
    Number(String),
    Text(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub(crate) fn texts<'t>(texts: impl IntoIterator<Item = &'t str>) -> Self {
        Self::Array(texts.into_iter().map(Self::text).collect())
    }

    pub(crate) fn number(number: u32) -> Self {
        Self::Number(number.to_string())
    }

    pub(crate) fn object<const N: usize>(members: [(&str, Self); N]) -> Self {
        Self::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// Returns a member of an object.
    pub(crate) fn member(&self, name: &str) -> Option<&Self> {
        let Self::Object(members) = self else { return None };
        members.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        let Self::Text(text) = self else { return None };
        Some(text)
    }

    pub(crate) fn items(&self) -> &[Self] {
        let Self::Array(items) = self else { return &[] };
        items
    }

    /// Returns the texts of an array. Returns `None` if an item is not text.
    pub(crate) fn as_texts(&self) -> Option<Vec<&str>> {
        let Self::Array(items) = self else { return None };
        items.iter().map(Self::as_text).collect()
    }

    pub(crate) fn to_input(&self) -> CstInputValue {
        match self {
            Self::Null => CstInputValue::Null,
            Self::Boolean(value) => CstInputValue::Bool(*value),
            Self::Number(number) => CstInputValue::Number(number.clone()),
            Self::Text(text) => CstInputValue::String(text.clone()),
            Self::Array(items) => CstInputValue::Array(items.iter().map(Self::to_input).collect()),
            Self::Object(members) => CstInputValue::Object(
                members.iter().map(|(name, value)| (name.clone(), value.to_input())).collect(),
            ),
        }
    }

    /// Returns the value of a node, or `None` for something that is not a JSON value.
    pub(crate) fn from_node(node: &CstNode) -> Option<Self> {
        if let Some(object) = node.as_object() {
            let members = object.properties().into_iter().map(|property| {
                Some((property.decoded_name()?, Self::from_node(&property.value()?)?))
            });
            return members.collect::<Option<_>>().map(Self::Object);
        }
        if let Some(array) = node.as_array() {
            return array.elements().iter().map(Self::from_node).collect::<Option<_>>().map(Self::Array);
        }
        if let Some(text) = node.as_string_lit() {
            return text.decoded_value().ok().map(Self::Text);
        }
        if let Some(number) = node.as_number_lit() {
            return Some(Self::Number(number.to_string()));
        }
        if let Some(boolean) = node.as_boolean_lit() {
            return Some(Self::Boolean(boolean.value()));
        }
        node.as_null_keyword().map(|_| Self::Null)
    }
}

/// A JSON document with its comments and white space.
pub(crate) struct Document {
    has_byte_order_mark: bool,
    root: CstRootNode,
}

impl Document {
    /// Parses a document. Comments and trailing commas are accepted, because the programs accept them. An empty text
    /// counts as an empty object.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (has_byte_order_mark, text) = match text.strip_prefix(BYTE_ORDER_MARK) {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let options = ParseOptions {
            allow_comments: true,
            allow_trailing_commas: true,
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        let root = CstRootNode::parse(text, &options).map_err(|error| {
            format!("it is not valid JSON (line {}: {})", error.line_display(), error.kind())
        })?;
        Ok(Self { has_byte_order_mark, root })
    }

    /// Returns the object at the top. Fails if there is another value.
    pub(crate) fn object(&self) -> Result<CstObject, String> {
        self.root.object_value_or_create().ok_or_else(|| "it must contain a JSON object".to_owned())
    }

    /// Returns the value of the whole document; an empty document is an empty object.
    pub(crate) fn value(&self) -> Option<Json> {
        self.root.value().map_or_else(|| Some(Json::Object(Vec::new())), |node| Json::from_node(&node))
    }

    pub(crate) fn to_text(&self) -> String {
        let mark = if self.has_byte_order_mark { BYTE_ORDER_MARK.to_string() } else { String::new() };
        mark + &self.root.to_string()
    }
}

/// Returns a member of an object. Fails if there are several with this name, because programs differ in which one counts.
pub(crate) fn find_member(object: &CstObject, name: &str) -> Result<Option<CstObjectProp>, String> {
    let mut found = object.properties().into_iter().filter(|property| {
        property.decoded_name().as_deref() == Some(name)
    });
    let first = found.next();
    if found.next().is_some() {
        return Err(format!("it contains the member {name:?} twice"));
    }
    Ok(first)
}

/// Returns a member that must be an object.
pub(crate) fn find_object(object: &CstObject, name: &str) -> Result<Option<CstObject>, String> {
    let Some(property) = find_member(object, name)? else { return Ok(None) };
    property.object_value().map(Some).ok_or_else(|| format!("{name:?} must be an object"))
}

/// Returns a member that must be an array.
pub(crate) fn find_array(object: &CstObject, name: &str) -> Result<Option<CstArray>, String> {
    let Some(property) = find_member(object, name)? else { return Ok(None) };
    property.array_value().map(Some).ok_or_else(|| format!("{name:?} must be an array"))
}
