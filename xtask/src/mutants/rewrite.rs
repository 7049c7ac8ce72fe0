//! Adds all mutants of a file to its source, each behind a switch. Only insertions are needed: `a < b` becomes
//! `(if is_active(7) { a <= b } else { a < b })`.

use std::collections::BTreeSet;
use std::ops::Range;

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::mutant::{LineColumn, Mutant, MutationKind};

/// A file with its mutants.
#[derive(Debug)]
pub(crate) struct RewrittenFile {
    pub(crate) text: String,
    /// The code of each mutant in `text`.
    pub(crate) code: Vec<MutantCode>,
    /// The functions in `text`.
    pub(crate) functions: Vec<Range<usize>>,
    /// The mutants that cannot be switched: those of constants and of `impl Trait` results, and `let` guards that are
    /// replaced with `true`.
    pub(crate) left_out: BTreeSet<usize>,
    /// The mutants that cannot compile: `||` beside `let`.
    pub(crate) unviable: BTreeSet<usize>,
}

/// The bytes that one mutant added to a file.
#[derive(Clone, Debug)]
pub(crate) struct MutantCode {
    pub(crate) number: usize,
    pub(crate) bytes: Range<usize>,
}

/// Adds the mutants to the source of a file.
pub(crate) fn rewrite(source: &str, mutants: &[&Mutant]) -> Result<RewrittenFile, String> {
    let file = syn::parse_file(source).map_err(|error| error.to_string())?;
    let lines = line_starts(source);
    let mut pending = Vec::new();
    for mutant in mutants {
        let bytes = byte_offset(source, &lines, mutant.start).zip(byte_offset(source, &lines, mutant.end));
        let (start, end) = bytes.ok_or_else(|| format!("{} is not in the file", mutant.name))?;
        pending.push(PendingMutant { mutant, bytes: start..end });
    }
    let mut switches = SwitchInserter { source, pending, ..SwitchInserter::default() };
    switches.visit_file(&file);
    match switches.pending.first() {
        Some(pending) => Err(format!("found no expression for {}", pending.mutant.name)),
        None => Ok(switches.into_file()),
    }
}

fn line_starts(source: &str) -> Vec<usize> {
    std::iter::once(0).chain(source.match_indices('\n').map(|(index, _)| index + 1)).collect()
}

fn byte_offset(source: &str, lines: &[usize], position: LineColumn) -> Option<usize> {
    let start = *lines.get(position.line.checked_sub(1)?)?;
    let line = source.get(start..)?;
    let column = position.column.checked_sub(1)?;
    line.char_indices().map(|(index, _)| index).chain([line.len()]).nth(column).map(|index| start + index)
}

/// A mutant whose expression has not been found yet.
struct PendingMutant<'m> {
    mutant: &'m Mutant,
    /// The changed bytes.
    bytes: Range<usize>,
}

/// Text to insert at an offset of the source.
struct Insertion {
    offset: usize,
    place: InsertionPlace,
    pieces: Vec<InsertedPiece>,
}

/// The order of insertions at the same offset. The numbers count the visited expressions; outer ones come first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum InsertionPlace {
    After(std::cmp::Reverse<usize>),
    Before(usize),
}

struct InsertedPiece {
    text: String,
    mutant: Option<usize>,
}

impl InsertedPiece {
    fn shared(text: &str) -> Self {
        Self { text: text.to_owned(), mutant: None }
    }

    fn of(mutant: &Mutant, text: String) -> Self {
        Self { text, mutant: Some(mutant.number) }
    }
}

/// Finds the expressions of the mutants and collects the insertions.
#[derive(Default)]
struct SwitchInserter<'m> {
    source: &'m str,
    pending: Vec<PendingMutant<'m>>,
    insertions: Vec<Insertion>,
    functions: Vec<Range<usize>>,
    left_out: BTreeSet<usize>,
    unviable: BTreeSet<usize>,
    /// How many constants or constant functions contain the visited code.
    constant_depth: usize,
}

impl<'m> SwitchInserter<'m> {
    /// Removes and returns the mutants of a kind that change code at this position.
    fn take(
        &mut self,
        kind: MutationKind,
        is_place: impl Fn(&Range<usize>) -> bool,
    ) -> Vec<PendingMutant<'m>> {
        let mut found = Vec::new();
        let mut index = 0;
        while index < self.pending.len() {
            if self.pending[index].mutant.kind == kind && is_place(&self.pending[index].bytes) {
                found.push(self.pending.remove(index));
            } else {
                index += 1;
            }
        }
        if self.constant_depth > 0 {
            self.left_out.extend(found.drain(..).map(|pending| pending.mutant.number));
        }
        found
    }

    fn insert_before(&mut self, offset: usize, pieces: Vec<InsertedPiece>) {
        let place = InsertionPlace::Before(self.insertions.len());
        self.insertions.push(Insertion { offset, place, pieces });
    }

    fn insert_after(&mut self, offset: usize, text: &str) {
        let place = InsertionPlace::After(std::cmp::Reverse(self.insertions.len()));
        self.insertions.push(Insertion { offset, place, pieces: vec![InsertedPiece::shared(text)] });
    }

    /// Makes an expression take the value of each of these mutants.
    fn wrap(&mut self, expression: Range<usize>, mutants: &[PendingMutant<'m>]) {
        if mutants.is_empty() {
            return;
        }
        let mut pieces = vec![InsertedPiece::shared("(")];
        for PendingMutant { mutant, bytes } in mutants {
            let before = &self.source[expression.start..bytes.start];
            let after = &self.source[bytes.end..expression.end];
            let changed = format!("{before}{}{after}", mutant.replacement);
            pieces.push(InsertedPiece::of(mutant, format!("if {} {{ {changed} }}", is_active(mutant))));
            pieces.push(InsertedPiece::shared(" else "));
        }
        pieces.push(InsertedPiece::shared("{ "));
        self.insert_before(expression.start, pieces);
        self.insert_after(expression.end, " })");
    }

    /// Adds switches to the body of a function, and visits the function.
    fn enter_function(
        &mut self,
        signature: &syn::Signature,
        function: Range<usize>,
        block: &syn::Block,
        visit: impl FnOnce(&mut Self),
    ) {
        self.functions.push(function);
        self.constant_depth += usize::from(signature.constness.is_some());
        if let Some(first) = block.stmts.first() {
            let start = bytes(first.span()).start;
            let mut mutants = self.take(MutationKind::FunctionBody, |changed| changed.start == start);
            mutants.retain(|pending| {
                let is_possible = !pending.mutant.returns_impl_trait;
                if !is_possible {
                    self.left_out.insert(pending.mutant.number);
                }
                is_possible
            });
            let pieces = mutants.iter().map(|PendingMutant { mutant, .. }| {
                let code = format!("if {} {{ return {}; }} ", is_active(mutant), mutant.replacement);
                InsertedPiece::of(mutant, code)
            });
            let pieces = pieces.collect();
            self.insert_before(start, pieces);
        }
        visit(self);
        self.constant_depth -= usize::from(signature.constness.is_some());
    }

    fn visit_constant(&mut self, visit: impl FnOnce(&mut Self)) {
        self.constant_depth += 1;
        visit(self);
        self.constant_depth -= 1;
    }

    fn into_file(mut self) -> RewrittenFile {
        self.insertions.sort_by_key(|insertion| (insertion.offset, insertion.place));
        let (mut text, mut code) = (String::new(), Vec::new());
        let mut copied = 0;
        // Where each inserted text is in the source, and its length.
        let mut shifts = Vec::new();
        for Insertion { offset, pieces, .. } in self.insertions {
            text.push_str(&self.source[copied..offset]);
            copied = offset;
            let start = text.len();
            for InsertedPiece { text: piece, mutant } in pieces {
                let bytes = text.len()..text.len() + piece.len();
                text.push_str(&piece);
                code.extend(mutant.map(|number| MutantCode { number, bytes }));
            }
            shifts.push((offset, text.len() - start));
        }
        text.push_str(&self.source[copied..]);
        let shifted = |offset: usize| {
            let before = shifts.iter().take_while(|(at, _)| *at < offset);
            offset + before.map(|(_, length)| length).sum::<usize>()
        };
        let functions = self.functions.iter().map(|bytes| shifted(bytes.start)..shifted(bytes.end)).collect();
        RewrittenFile { text, code, functions, left_out: self.left_out, unviable: self.unviable }
    }
}

impl<'ast> Visit<'ast> for SwitchInserter<'_> {
    fn visit_item_fn(&mut self, node: &'ast syn::ItemFn) {
        self.enter_function(&node.sig, bytes(node.span()), &node.block, |this| {
            visit::visit_item_fn(this, node);
        });
    }

    fn visit_impl_item_fn(&mut self, node: &'ast syn::ImplItemFn) {
        self.enter_function(&node.sig, bytes(node.span()), &node.block, |this| {
            visit::visit_impl_item_fn(this, node);
        });
    }

    fn visit_trait_item_fn(&mut self, node: &'ast syn::TraitItemFn) {
        match &node.default {
            Some(block) => self.enter_function(&node.sig, bytes(node.span()), block, |this| {
                visit::visit_trait_item_fn(this, node);
            }),
            None => visit::visit_trait_item_fn(self, node),
        }
    }

    fn visit_item_const(&mut self, node: &'ast syn::ItemConst) {
        self.visit_constant(|this| visit::visit_item_const(this, node));
    }

    fn visit_impl_item_const(&mut self, node: &'ast syn::ImplItemConst) {
        self.visit_constant(|this| visit::visit_impl_item_const(this, node));
    }

    fn visit_item_static(&mut self, node: &'ast syn::ItemStatic) {
        self.visit_constant(|this| visit::visit_item_static(this, node));
    }

    fn visit_expr_const(&mut self, node: &'ast syn::ExprConst) {
        self.visit_constant(|this| visit::visit_expr_const(this, node));
    }

    fn visit_type_array(&mut self, node: &'ast syn::TypeArray) {
        self.visit_constant(|this| visit::visit_type_array(this, node));
    }

    fn visit_expr_binary(&mut self, node: &'ast syn::ExprBinary) {
        let operator = bytes(node.op.span());
        let mutants = self.take(MutationKind::BinaryOperator, |changed| changed.start == operator.start);
        if contains_let(&node.left) || contains_let(&node.right) {
            self.unviable.extend(mutants.iter().map(|pending| pending.mutant.number));
        } else {
            self.wrap(bytes(node.span()), &mutants);
        }
        visit::visit_expr_binary(self, node);
    }

    fn visit_expr_unary(&mut self, node: &'ast syn::ExprUnary) {
        let operator = bytes(node.op.span());
        let mutants = self.take(MutationKind::UnaryOperator, |changed| changed.start == operator.start);
        self.wrap(bytes(node.span()), &mutants);
        visit::visit_expr_unary(self, node);
    }

    fn visit_expr_struct(&mut self, node: &'ast syn::ExprStruct) {
        let starts: Vec<usize> = node.fields.iter().map(|field| bytes(field.span()).start).collect();
        let mutants = self.take(MutationKind::StructField, |changed| starts.contains(&changed.start));
        self.wrap(bytes(node.span()), &mutants);
        visit::visit_expr_struct(self, node);
    }

    /// A deleted arm becomes an arm whose guard is false.
    fn visit_arm(&mut self, node: &'ast syn::Arm) {
        let start = bytes(node.span()).start;
        let (pattern, guard) = match &node.pat {
            syn::Pat::Guard(guarded) => (bytes(guarded.pat.span()), Some(&*guarded.guard)),
            pattern => (bytes(pattern.span()), None),
        };
        let is_arm = |changed: &Range<usize>| changed.start == start || changed.start == pattern.start;
        let deleted = self.take(MutationKind::MatchArm, is_arm);
        let deletion = |pending: &PendingMutant<'_>| {
            InsertedPiece::of(pending.mutant, format!("!{} && ", is_active(pending.mutant)))
        };
        let Some(guard) = guard else {
            if !deleted.is_empty() {
                let mut pieces = vec![InsertedPiece::shared(" if ")];
                pieces.extend(deleted.iter().map(deletion));
                pieces.push(InsertedPiece::shared("true"));
                self.insert_before(pattern.end, pieces);
            }
            return visit::visit_arm(self, node);
        };
        let condition = bytes(guard.span());
        let has_let = contains_let(guard);
        let replaced = self.take(MutationKind::MatchGuard, |changed| changed.start == condition.start);
        let mut pieces: Vec<InsertedPiece> = deleted.iter().map(deletion).collect();
        let mut alternatives = Vec::new();
        for pending in &replaced {
            match pending.mutant.replacement.as_str() {
                "false" => pieces.push(deletion(pending)),
                _ if has_let => drop(self.left_out.insert(pending.mutant.number)),
                _ => alternatives
                    .push(InsertedPiece::of(pending.mutant, format!("{} || ", is_active(pending.mutant)))),
            }
        }
        let is_changed = !pieces.is_empty() || !alternatives.is_empty();
        if is_changed && !has_let {
            pieces.push(InsertedPiece::shared("("));
            pieces.append(&mut alternatives);
            self.insert_after(condition.end, ")");
        }
        self.insert_before(condition.start, pieces);
        visit::visit_arm(self, node);
    }
}

/// Returns whether a condition contains `let`, which cannot be in parentheses.
fn contains_let(condition: &syn::Expr) -> bool {
    match condition {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(binary) => contains_let(&binary.left) || contains_let(&binary.right),
        _ => false,
    }
}

fn is_active(mutant: &Mutant) -> String {
    format!("crate::mutant_switch::is_active({})", mutant.number)
}

fn bytes(span: Span) -> Range<usize> {
    span.byte_range()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a mutant that changes the first occurrence of a text.
    fn mutant(number: usize, kind: MutationKind, source: &str, changed: &str, replacement: &str) -> Mutant {
        let start = source.find(changed).unwrap();
        let position = |offset: usize| {
            let before = &source[..offset];
            let column = before.rsplit('\n').next().unwrap().chars().count() + 1;
            LineColumn { line: before.matches('\n').count() + 1, column }
        };
        Mutant {
            number,
            name: format!("replace {changed} with {replacement}"),
            file: "a.rs".to_owned(),
            kind,
            start: position(start),
            end: position(start + changed.len()),
            replacement: replacement.to_owned(),
            returns_impl_trait: false,
        }
    }

    /// Rewrites a source. Switches are written as `#N`.
    fn rewritten(source: &str, mutants: &[Mutant]) -> String {
        let file = rewrite(source, &mutants.iter().collect::<Vec<_>>()).unwrap();
        assert!(syn::parse_file(&file.text).is_ok(), "{}", file.text);
        for code in &file.code {
            let call = format!("is_active({})", code.number);
            assert!(file.text[code.bytes.clone()].contains(&call), "{code:?} in {}", file.text);
        }
        file.text.replace("crate::mutant_switch::is_active(", "#(")
    }

    #[test]
    fn an_operator_has_its_other_values_and_inner_mutants_are_in_the_original() {
        let source = "fn é(a: bool) -> bool { a && !b() }";
        let mutants = [
            mutant(1, MutationKind::FunctionBody, source, "a && !b()", "true"),
            mutant(2, MutationKind::BinaryOperator, source, "&&", "||"),
            mutant(3, MutationKind::BinaryOperator, source, "&&", "=="),
            mutant(4, MutationKind::UnaryOperator, source, "!", ""),
        ];
        assert_eq!(
            rewritten(source, &mutants),
            "fn é(a: bool) -> bool { if #(1) { return true; } (if #(2) { a || !b() } else if #(3) { a == !b() } \
             else { a && (if #(4) { b() } else { !b() }) }) }"
        );
    }

    #[test]
    fn a_deleted_arm_and_a_replaced_guard_become_guards() {
        let source =
            "fn f() { match x { A => 1, B if c || d => 2, C if let Some(e) = g && h => 3, _ => 4 } }";
        let mutants = [
            mutant(1, MutationKind::MatchArm, source, "A => 1", ""),
            mutant(2, MutationKind::MatchArm, source, "B if c || d => 2", ""),
            mutant(3, MutationKind::MatchGuard, source, "c || d", "true"),
            mutant(4, MutationKind::MatchGuard, source, "c || d", "false"),
            mutant(5, MutationKind::BinaryOperator, source, "||", "&&"),
            mutant(6, MutationKind::MatchGuard, source, "let Some(e) = g && h", "false"),
        ];
        assert_eq!(
            rewritten(source, &mutants),
            "fn f() { match x { A if !#(1) && true => 1, B if !#(2) && !#(4) && (#(3) || (if #(5) { c && d } else { \
             c || d })) => 2, C if !#(6) && let Some(e) = g && h => 3, _ => 4 } }"
        );
    }

    #[test]
    fn a_deleted_field_has_the_value_of_the_base() {
        let source = "fn f() -> S { S { a: 1, b: 2, ..s } }";
        let mutants = [mutant(1, MutationKind::StructField, source, "b: 2,", "")];
        assert_eq!(
            rewritten(source, &mutants),
            "fn f() -> S { (if #(1) { S { a: 1,  ..s } } else { S { a: 1, b: 2, ..s } }) }"
        );
    }

    #[test]
    fn mutants_that_cannot_be_switched_are_left_out() {
        let source = "const A: u8 = 1 + 1; const fn f() -> u8 { 2 * 2 } fn g() { if a && let b = c {} \
                      match x { C if let d = e => 1, _ => 2 } } fn h() -> impl I { i() }";
        let mut mutants = [
            mutant(1, MutationKind::BinaryOperator, source, "+", "-"),
            mutant(2, MutationKind::BinaryOperator, source, "*", "+"),
            mutant(3, MutationKind::FunctionBody, source, "2 * 2", "0"),
            mutant(4, MutationKind::BinaryOperator, source, "&&", "||"),
            mutant(5, MutationKind::MatchGuard, source, "let d = e", "true"),
            mutant(6, MutationKind::FunctionBody, source, "i()", "j()"),
        ];
        mutants[5].returns_impl_trait = true;
        let file = rewrite(source, &mutants.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!(file.text, source);
        assert_eq!(file.left_out, BTreeSet::from([1, 2, 3, 5, 6]));
        assert_eq!(file.unviable, BTreeSet::from([4]));
    }

    #[test]
    fn a_mutant_without_an_expression_is_an_error() {
        let source = "fn f() -> u8 { 1 }";
        let lost = mutant(1, MutationKind::BinaryOperator, source, "1", "2");
        assert_eq!(rewrite(source, &[&lost]).unwrap_err(), "found no expression for replace 1 with 2");
    }

    #[test]
    fn the_position_of_a_function_moves_with_its_text() {
        let source = "fn f() { a + b; } fn g() { c }";
        let mutants = [mutant(1, MutationKind::BinaryOperator, source, "+", "-")];
        let file = rewrite(source, &mutants.iter().collect::<Vec<_>>()).unwrap();
        let texts: Vec<&str> = file.functions.iter().map(|bytes| &file.text[bytes.clone()]).collect();
        assert!(texts[0].starts_with("fn f() {") && texts[0].ends_with("; }"), "{texts:?}");
        assert_eq!(texts[1], "fn g() { c }");
    }
}
