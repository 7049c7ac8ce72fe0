//! An object's members against a table: what is there, what is missing, what stands twice.

use std::borrow::Cow;
use std::collections::HashSet;

use super::path::Path;
use super::table::Table;
use crate::json::Value;
use crate::rule::{self, Findings};

/// Where the known members of an object are; by the place of their field in the table.
pub(super) struct Places<'d> {
    root: Value<'d>,
    doc: crate::json::Doc<'d>,
    at: [u32; 64],
    pub(super) seen: u64,
}

impl<'d> Places<'d> {
    pub(super) fn new(doc: &crate::json::Doc<'d>) -> Self {
        Self { root: doc.root(), doc: *doc, at: [0; 64], seen: 0 }
    }

    /// Notes a member; says whether it is the first of its name.
    #[inline]
    pub(super) fn note(&mut self, field: usize, value: Value<'d>) -> bool {
        let first = self.seen & 1 << field == 0;
        self.seen |= 1 << field;
        self.at[field] = value.index();
        first
    }

    #[inline]
    pub(super) fn get(&self, field: usize) -> Option<Value<'d>> {
        (self.seen & 1 << field != 0).then(|| self.doc.at(self.at[field]))
    }

    /// The member of that name, if the table knows it.
    pub(super) fn named(&self, table: &Table, name: &str) -> Option<Value<'d>> {
        self.get(table.find(name)?)
    }

    pub(super) fn text(&self, table: &Table, name: &str) -> Option<Cow<'d, str>> {
        self.named(table, name)?.text()
    }

    pub(super) fn root(&self) -> Value<'d> {
        self.root
    }
}

pub(super) fn missing(table: &Table, seen: u64, findings: &mut Findings) {
    let mut absent = table.required & !seen;
    while absent != 0 {
        let field = table.field(absent.trailing_zeros() as usize);
        absent &= absent - 1;
        if let Some(rule) = field.missing {
            findings.push(rule, String::new(), format!("{} is missing", field.name));
        }
    }
}

#[cold]
pub(super) fn doubled(path: &Path<'_>, findings: &mut Findings) {
    findings.push(
        rule::SOUND_JSON,
        path.pointer(),
        "this key stands twice; the last one was taken".to_owned(),
    );
}

/// Names that no table knows, so that a doubled one is noticed.
#[derive(Default)]
pub(super) struct Strangers<'d>(HashSet<Cow<'d, str>>);

impl<'d> Strangers<'d> {
    pub(super) fn note(&mut self, name: Cow<'d, str>, findings: &mut Findings) {
        if let Some(name) = self.0.replace(name) {
            doubled(&Path::Member(&Path::Root, &name), findings);
        }
    }
}
