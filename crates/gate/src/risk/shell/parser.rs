//! A parser for the part of the shell's language that is easy to judge: simple commands, pipes, lists, subshells, quotes,
//! redirections and `$(…)`. It refuses everything else, such as loops, functions, here-documents, comments and backticks, and
//! everything that shells read differently.

/// A command line: all simple commands in it, including those in subshells and substitutions.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Script {
    pub(super) commands: Vec<SimpleCommand>,
}

/// A command with its arguments.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SimpleCommand {
    pub(super) assignments: Vec<Assignment>,
    pub(super) words: Vec<Word>,
    pub(super) redirections: Vec<Redirection>,
}

/// A variable that is set for a command.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Assignment {
    pub(super) name: String,
    /// `None` if it depends on something else.
    pub(super) value: Option<String>,
}

/// A word after quotes are removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// A text that is known.
    Literal(String),
    /// A text that depends on variables, files or the output of a command, or that becomes several words. Each of these
    /// words begins with this text, which may be empty.
    Dynamic(String),
}

impl Word {
    pub(super) fn literal(&self) -> Option<&str> {
        match self {
            Self::Literal(text) => Some(text),
            Self::Dynamic(_) => None,
        }
    }

    /// Whether this may turn out to be an option.
    pub(super) fn may_become_option(&self) -> bool {
        matches!(self, Self::Dynamic(beginning) if beginning.is_empty() || beginning.starts_with('-'))
    }
}

/// A redirection of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Redirection {
    /// Reads from a file or a string.
    Input(Word),
    /// Writes to a file.
    Output(Word),
    /// Duplicates another descriptor.
    Duplicate,
}

/// Words that start something that is not a simple command.
const RESERVED: &[&str] = &[
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "select",
    "function", "time", "coproc", "[[", "{", "}", "!",
];

/// Texts that are refused wherever they are, even in quotes: arithmetic, process substitutions and backticks, and what shells
/// read differently (fish knows `\'` in single quotes).
const REFUSED: &[&str] = &["\\\n", "$\\", "$\n", "((", "$[", "<(", ">(", "`", "\\'"];

/// Whether a text contains something that this parser never reads.
fn is_refused(text: &str) -> bool {
    REFUSED.iter().any(|refused| text.contains(refused))
        || text.chars().any(|c| !matches!(c, '\n' | '\t' | ' ') && (c.is_control() || c.is_whitespace()))
}

/// Parses a command line. Returns `None` if it uses anything that this parser does not know.
pub(super) fn parse(text: &str, max_depth: usize) -> Option<Script> {
    if is_refused(text) {
        return None;
    }
    let mut parser = Parser { chars: text.chars().collect(), at: 0, script: Script::default() };
    parser.list(max_depth, None)?;
    (parser.at == parser.chars.len()).then_some(parser.script)
}

struct Parser {
    chars: Vec<char>,
    at: usize,
    script: Script,
}

impl Parser {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn peek_second(&self) -> Option<char> {
        self.chars.get(self.at + 1).copied()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += 1;
        Some(next)
    }

    fn eat(&mut self, expected: char) -> bool {
        let found = self.peek() == Some(expected);
        self.at += usize::from(found);
        found
    }

    /// Parses commands up to `end`, or to the end of the text.
    fn list(&mut self, depth: usize, end: Option<char>) -> Option<()> {
        if depth == 0 {
            return None;
        }
        let mut command = SimpleCommand::default();
        loop {
            self.skip_blanks();
            let Some(next) = self.peek() else {
                self.push(command)?;
                return end.is_none().then_some(());
            };
            if Some(next) == end {
                self.at += 1;
                return self.push(command);
            }
            match next {
                '\n' | ';' => {
                    self.at += 1;
                    // `;;` belongs to `case`.
                    if next == ';' && self.peek() == Some(';') {
                        return None;
                    }
                    self.push(std::mem::take(&mut command))?;
                }
                '&' if self.peek_second() == Some('>') => {
                    self.at += 2;
                    self.eat('>');
                    let target = self.redirection_target(depth)?;
                    command.redirections.push(Redirection::Output(target));
                }
                '&' | '|' => {
                    self.at += 1;
                    if !self.eat(next) && next == '|' {
                        self.eat('&');
                    }
                    self.push(std::mem::take(&mut command))?;
                }
                '(' => {
                    // A subshell, which must start a command. `name()` would be a function.
                    if !command.words.is_empty() || !command.assignments.is_empty() {
                        return None;
                    }
                    self.at += 1;
                    self.list(depth - 1, Some(')'))?;
                    self.after_subshell(depth)?;
                }
                // An interactive shell may not take `#` for a comment.
                ')' | '#' => return None,
                '<' | '>' => command.redirections.push(self.redirection(depth)?),
                _ => self.word_of(&mut command, depth)?,
            }
        }
    }

    /// Handles what may follow a subshell: redirections and the end of the command.
    fn after_subshell(&mut self, depth: usize) -> Option<()> {
        let mut command = SimpleCommand::default();
        loop {
            self.skip_blanks();
            match self.peek() {
                Some('<' | '>') => command.redirections.push(self.redirection(depth)?),
                None | Some('\n' | ';' | '&' | '|' | ')') => return self.push(command),
                Some(_) => return None,
            }
        }
    }

    fn push(&mut self, command: SimpleCommand) -> Option<()> {
        let name = command.words.first().and_then(Word::literal);
        if name.is_some_and(|name| RESERVED.contains(&name)) {
            return None;
        }
        if command != SimpleCommand::default() {
            self.script.commands.push(command);
        }
        Some(())
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.at += 1;
        }
    }

    fn redirection(&mut self, depth: usize) -> Option<Redirection> {
        match self.next()? {
            '<' => {
                if self.eat('<') {
                    // `<<<` is a string; `<<` is a here-document, which this parser does not read.
                    if !self.eat('<') {
                        return None;
                    }
                } else if self.eat('&') {
                    let target = self.redirection_target(depth)?;
                    return Some(if is_descriptor(&target) {
                        Redirection::Duplicate
                    } else {
                        Redirection::Input(target)
                    });
                } else if self.eat('>') {
                    return Some(Redirection::Output(self.redirection_target(depth)?));
                }
                Some(Redirection::Input(self.redirection_target(depth)?))
            }
            '>' => {
                if self.eat('&') {
                    let target = self.redirection_target(depth)?;
                    return Some(if is_descriptor(&target) {
                        Redirection::Duplicate
                    } else {
                        Redirection::Output(target)
                    });
                }
                if !self.eat('>') {
                    self.eat('|');
                }
                Some(Redirection::Output(self.redirection_target(depth)?))
            }
            _ => None,
        }
    }

    fn redirection_target(&mut self, depth: usize) -> Option<Word> {
        self.skip_blanks();
        let (word, raw) = self.word(depth)?;
        // A word that begins with `#` is a comment for some shells.
        (!raw.is_empty() && !raw.starts_with('#')).then_some(word)
    }

    /// Reads a word and adds it to the command: as an assignment, as a descriptor before a redirection, or as an argument.
    fn word_of(&mut self, command: &mut SimpleCommand, depth: usize) -> Option<()> {
        let (word, raw) = self.word(depth)?;
        if raw.is_empty() {
            return None;
        }
        let is_descriptor = raw.chars().all(|c| c.is_ascii_digit());
        if is_descriptor && matches!(self.peek(), Some('<' | '>')) {
            return Some(());
        }
        // `name(` begins a function, and `{name}>` sets a variable.
        if self.peek() == Some('(') || (raw.starts_with('{') && matches!(self.peek(), Some('<' | '>'))) {
            return None;
        }
        if command.words.is_empty()
            && let Some((name, _)) = raw.split_once('=')
            && is_variable_name(name.strip_suffix('+').unwrap_or(name))
        {
            let value = word.literal().and_then(|text| Some(text.split_once('=')?.1.to_owned()));
            command.assignments.push(Assignment { name: name.to_owned(), value });
            return Some(());
        }
        command.words.push(word);
        Some(())
    }

    /// Reads a word. Returns its value, and its source.
    fn word(&mut self, depth: usize) -> Option<(Word, String)> {
        let start = self.at;
        let (mut text, mut beginning) = (String::new(), None::<String>);
        while let Some(c) = self.peek() {
            match c {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => break,
                '\'' => {
                    self.at += 1;
                    loop {
                        match self.next()? {
                            '\'' => break,
                            c => text.push(c),
                        }
                    }
                }
                '"' => {
                    self.at += 1;
                    self.double_quotes(&mut text, &mut beginning, depth)?;
                }
                '\\' => {
                    self.at += 1;
                    text.push(self.next()?);
                }
                '$' => {
                    // The value is split, so later words can begin with anything.
                    if self.dollar(&mut text, depth)? != Dollar::Text {
                        beginning = Some(String::new());
                        text.clear();
                    }
                }
                // Values of these depend on files, or become several words.
                '*' | '?' | '[' | '{' | '}' | '~' => {
                    if c != '~' || self.at == start {
                        beginning.get_or_insert_with(|| text.clone());
                    }
                    self.at += 1;
                    text.push(c);
                }
                c => {
                    self.at += 1;
                    text.push(c);
                }
            }
        }
        let raw: String = self.chars.get(start..self.at)?.iter().collect();
        Some(match beginning {
            // `[` is a program.
            Some(beginning) if raw != "[" => (Word::Dynamic(beginning), raw),
            _ => (Word::Literal(text), raw),
        })
    }

    /// Reads the rest of a text in double quotes. If it contains an expansion, the text before it is the word's `beginning`.
    fn double_quotes(
        &mut self,
        text: &mut String,
        beginning: &mut Option<String>,
        depth: usize,
    ) -> Option<()> {
        loop {
            match self.peek()? {
                '"' => {
                    self.at += 1;
                    return Some(());
                }
                '\\' => {
                    self.at += 1;
                    match self.next()? {
                        c @ ('$' | '`' | '"' | '\\') => text.push(c),
                        c => {
                            text.push('\\');
                            text.push(c);
                        }
                    }
                }
                '$' => {
                    let before = text.clone();
                    match self.dollar(text, depth)? {
                        Dollar::Text => {}
                        Dollar::Value => {
                            beginning.get_or_insert(before);
                        }
                        Dollar::Values => return None,
                    }
                }
                c => {
                    self.at += 1;
                    text.push(c);
                }
            }
        }
    }

    /// Reads what starts with a dollar sign.
    fn dollar(&mut self, text: &mut String, depth: usize) -> Option<Dollar> {
        self.at += 1;
        let found = match self.peek() {
            Some('(') => {
                // Arithmetic can contain assignments and substitutions.
                if self.peek_second() == Some('(') {
                    return None;
                }
                self.at += 1;
                self.list(depth - 1, Some(')'))?;
                Dollar::Value
            }
            Some('{') => {
                self.at += 1;
                // Only the plain form: the others can assign, run commands, or expand other variables.
                while self.peek().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') {
                    self.at += 1;
                }
                self.eat('}').then_some(Dollar::Value)?
            }
            Some(c)
                if c.is_ascii_alphanumeric()
                    || matches!(c, '_' | '?' | '#' | '@' | '*' | '$' | '!' | '-') =>
            {
                self.at += 1;
                if c.is_ascii_alphabetic() || c == '_' {
                    while self.peek().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') {
                        self.at += 1;
                    }
                }
                if matches!(c, '@' | '*') { Dollar::Values } else { Dollar::Value }
            }
            None | Some(' ' | '\t') => {
                text.push('$');
                Dollar::Text
            }
            // Shells know more expansions than these.
            _ => return None,
        };
        // zsh evaluates the index of an array.
        (found == Dollar::Text || !matches!(self.peek(), Some('['))).then_some(found)
    }
}

/// The meaning of a dollar sign.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Dollar {
    /// Only itself.
    Text,
    /// An expansion.
    Value,
    /// An expansion that is several words even in quotes.
    Values,
}

fn is_descriptor(target: &Word) -> bool {
    target.literal().is_some_and(|text| text == "-" || text.chars().all(|c| c.is_ascii_digit()))
}

fn is_variable_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
