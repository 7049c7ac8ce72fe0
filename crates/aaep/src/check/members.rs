//! Members of an object compared with a field table: present, missing and duplicate members.

use std::borrow::Cow;
use std::collections::HashSet;

use super::field_table::FieldTable;
use super::path::Path;
use crate::json::JsonValue;
use crate::rule::{self, Findings};

/// The known members of an object, by the index of their field in the table.
pub(super) struct MemberIndex<'d> {
    root: JsonValue<'d>,
    doc: crate::json::Doc<'d>,
    value_indices: [u32; 64],
    /// Bit set of the fields that are present.
    pub(super) seen: u64,
}

impl<'d> MemberIndex<'d> {
    pub(super) fn new(doc: &crate::json::Doc<'d>) -> Self {
        Self { root: doc.root(), doc: *doc, value_indices: [0; 64], seen: 0 }
    }

    /// Records a member. Returns whether it is the first with its name.
    #[inline]
    pub(super) fn record(&mut self, field: usize, value: JsonValue<'d>) -> bool {
        let is_first = self.seen & 1 << field == 0;
        self.seen |= 1 << field;
        self.value_indices[field] = value.index();
        is_first
    }

    #[inline]
    pub(super) fn get(&self, field: usize) -> Option<JsonValue<'d>> {
        (self.seen & 1 << field != 0).then(|| self.doc.value_at(self.value_indices[field]))
    }

    /// Returns the member with this name, if the table knows it.
    pub(super) fn get_by_name(&self, table: &FieldTable, name: &str) -> Option<JsonValue<'d>> {
        self.get(table.find(name)?)
    }

    pub(super) fn text(&self, table: &FieldTable, name: &str) -> Option<Cow<'d, str>> {
        self.get_by_name(table, name)?.text()
    }

    pub(super) fn root(&self) -> JsonValue<'d> {
        self.root
    }
}

pub(super) fn check_missing(table: &FieldTable, seen: u64, findings: &mut Findings) {
    let mut missing = table.required & !seen;
    while missing != 0 {
        let field = table.field(missing.trailing_zeros() as usize);
        missing &= missing - 1;
        if let Some(rule) = field.missing_rule {
            findings.push(rule, String::new(), format!("{} is missing", field.name));
        }
    }
}

#[cold]
pub(super) fn report_duplicate(path: &Path<'_>, findings: &mut Findings) {
    findings.push(
        rule::INTEROPERABLE_JSON,
        path.pointer(),
        "duplicate key; the last value was used".to_owned(),
    );
}

/// Names of members that the table does not contain, collected to detect duplicates.
#[derive(Default)]
pub(super) struct UnknownMembers<'d>(HashSet<Cow<'d, str>>);

impl<'d> UnknownMembers<'d> {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn record(&mut self, name: Cow<'d, str>, findings: &mut Findings) {
        if let Some(name) = self.0.replace(name) {
            report_duplicate(&Path::Member(&Path::Root, &name), findings);
        }
    }
}
