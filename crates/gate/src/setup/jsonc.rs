//! JSON with comments: strict parsing, values that can be compared, and access that refuses ambiguous documents.
//!
//! [`SyntaxTree`] reads and says where things are. [`insertion_root`] gives the library's own tree, which inserts values with the
//! indentation of their surroundings.

use std::ops::Range;

use jsonc_parser::ast::{Array, Object, ObjectProp, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::cst::{CstInputValue, CstRootNode};
use jsonc_parser::tokens::{Token, TokenAndRange};
use jsonc_parser::{
    CollectOptions, CommentCollectionStrategy, ParseOptions, ParseResult, errors::ParseError, parse_to_ast,
};

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
}

impl From<&Value<'_>> for Json {
    fn from(value: &Value<'_>) -> Self {
        match value {
            Value::StringLit(text) => Self::Text(text.value.to_string()),
            Value::NumberLit(number) => Self::Number(number.value.to_owned()),
            Value::BooleanLit(boolean) => Self::Boolean(boolean.value),
            Value::Object(object) => Self::from(object),
            Value::Array(array) => Self::Array(array.elements.iter().map(Self::from).collect()),
            Value::NullKeyword(_) => Self::Null,
        }
    }
}

impl From<&Object<'_>> for Json {
    fn from(object: &Object<'_>) -> Self {
        let member =
            |property: &ObjectProp<'_>| (property.name.as_str().to_owned(), Self::from(&property.value));
        Self::Object(object.properties.iter().map(member).collect())
    }
}

/// A parsed document, with the positions of everything in it.
pub(crate) struct SyntaxTree<'t> {
    text: &'t str,
    root: Object<'t>,
    tokens: Vec<TokenAndRange<'t>>,
}

impl<'t> SyntaxTree<'t> {
    /// Parses a document. Comments and trailing commas are accepted, because the programs accept them. An empty text
    /// counts as an empty object. The text must not start with a byte order mark.
    pub(crate) fn parse(text: &'t str) -> Result<Self, String> {
        let collect = CollectOptions { comments: CommentCollectionStrategy::AsTokens, tokens: true };
        let ParseResult { value, tokens, .. } =
            parse_to_ast(text, &collect, &options()).map_err(|error| describe(&error))?;
        let root = match value {
            Some(Value::Object(root)) => root,
            None => Object { range: jsonc_parser::common::Range::new(0, 0), properties: Vec::new() },
            Some(_) => return Err("it must contain a JSON object".to_owned()),
        };
        Ok(Self { text, root, tokens: tokens.unwrap_or_default() })
    }

    pub(crate) fn root(&self) -> &Object<'t> {
        &self.root
    }

    /// Returns whether there is a comment in a range, outside the excluded ranges.
    pub(crate) fn has_comments(&self, range: &Range<usize>, excluded: &[Range<usize>]) -> bool {
        self.comments().any(|comment| {
            range.contains(&comment.start) && !excluded.iter().any(|range| range.contains(&comment.start))
        })
    }

    /// Returns the ranges to delete so that these items of a list are gone and the others are still separated by
    /// commas. Comments stay.
    pub(crate) fn deletions(&self, items: &[Range<usize>], is_removed: &[bool]) -> Vec<Range<usize>> {
        let mut deletions = Vec::new();
        let mut last_kept = None;
        for (item, is_removed) in items.iter().zip(is_removed) {
            if !is_removed {
                last_kept = Some(item);
                continue;
            }
            let comma = self.comma_after(item.end);
            match &comma {
                Some(comma)
                    if self.text.get(item.end..comma.start).is_some_and(|gap| gap.trim().is_empty()) =>
                {
                    deletions.push(self.with_white_space(item.start..comma.end));
                }
                Some(comma) => {
                    deletions.push(self.with_white_space(item.clone()));
                    deletions.push(comma.clone());
                }
                None => {
                    // The last item of a list without a comma at its end, so the comma before it has to go.
                    deletions.extend(last_kept.and_then(|kept| self.comma_after(kept.end)));
                    deletions.push(self.with_white_space(item.clone()));
                }
            }
        }
        deletions
    }

    fn comma_after(&self, position: usize) -> Option<Range<usize>> {
        let start = self.tokens.partition_point(|token| token.range.start < position);
        let next = self.tokens.get(start..)?.iter().find(|token| !is_comment(token))?;
        matches!(next.token, Token::Comma).then(|| to_range(next))
    }

    /// Extends a range by the white space that belongs to it: whole lines if nothing else is on them.
    fn with_white_space(&self, range: Range<usize>) -> Range<usize> {
        let is_blank = |c: char| c == ' ' || c == '\t';
        let before = self.text.get(..range.start).unwrap_or_default();
        let line_before = before.trim_end_matches(is_blank);
        let after = self.text.get(range.end..).unwrap_or_default();
        let line_after = after.trim_start_matches(is_blank);
        let (start, end) = (line_before.len(), self.text.len() - line_after.len());
        let line_end = ["\n", "\r\n"].into_iter().find(|line_end| line_after.starts_with(line_end));
        let is_line_start = start == 0 || line_before.ends_with('\n');
        let is_list_end = line_after.starts_with(['}', ']']);
        match line_end {
            Some(line_end) if is_line_start => start..end + line_end.len(),
            None if is_line_start && is_list_end => {
                let previous_end = line_before.trim_end().len();
                // A line comment needs the end of its line.
                let is_comment = self.comments().any(|comment| comment.end == previous_end);
                if is_comment { start..range.end } else { previous_end..range.end }
            }
            Some(_) => start..range.end,
            None if is_list_end => start..range.end,
            None => range.start..end,
        }
    }

    fn comments(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.tokens.iter().filter(|token| is_comment(token)).map(to_range)
    }
}

/// Parses a document for insertion.
pub(crate) fn insertion_root(text: &str) -> Result<CstRootNode, String> {
    CstRootNode::parse(text, &options()).map_err(|error| describe(&error))
}

/// Splits a byte order mark off a text.
pub(crate) fn split_byte_order_mark(text: &str) -> (&str, &str) {
    let length = if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len_utf8() } else { 0 };
    text.split_at(length)
}

/// Deletes ranges of a text. They may overlap.
pub(crate) fn delete_ranges(text: &str, mut ranges: Vec<Range<usize>>) -> String {
    ranges.sort_by_key(|range| range.start);
    let (mut result, mut end) = (String::with_capacity(text.len()), 0);
    for range in ranges {
        result.push_str(text.get(end..range.start).unwrap_or_default());
        end = end.max(range.end);
    }
    result.push_str(text.get(end..).unwrap_or_default());
    result
}

/// Returns a member of an object. Fails if there are several with this name, because programs differ in which one counts.
pub(crate) fn find_member<'o, 't>(
    object: &'o Object<'t>,
    name: &str,
) -> Result<Option<&'o ObjectProp<'t>>, String> {
    let mut found = object.properties.iter().filter(|property| property.name.as_str() == name);
    let first = found.next();
    if found.next().is_some() {
        return Err(format!("it contains the member {name:?} twice"));
    }
    Ok(first)
}

/// Returns a member that must be an object.
pub(crate) fn find_object<'o, 't>(
    object: &'o Object<'t>,
    name: &str,
) -> Result<Option<&'o Object<'t>>, String> {
    let Some(property) = find_member(object, name)? else { return Ok(None) };
    property.value.as_object().map(Some).ok_or_else(|| format!("{name:?} must be an object"))
}

/// Returns a member that must be an array.
pub(crate) fn find_array<'o, 't>(
    object: &'o Object<'t>,
    name: &str,
) -> Result<Option<&'o Array<'t>>, String> {
    let Some(property) = find_member(object, name)? else { return Ok(None) };
    property.value.as_array().map(Some).ok_or_else(|| format!("{name:?} must be an array"))
}

pub(crate) fn to_range(node: &impl Ranged) -> Range<usize> {
    let range = node.range();
    range.start..range.end
}

fn options() -> ParseOptions {
    ParseOptions {
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
    }
}

fn describe(error: &ParseError) -> String {
    format!("it is not valid JSON (line {}: {})", error.line_display(), error.kind())
}

fn is_comment(token: &TokenAndRange<'_>) -> bool {
    matches!(token.token, Token::CommentLine(_) | Token::CommentBlock(_))
}
