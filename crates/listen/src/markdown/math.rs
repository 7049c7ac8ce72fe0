//! Simple formulas in words: `x^2 \le \frac{1}{2}` is "x squared is at most 1 over 2".

use std::iter::Peekable;
use std::str::Chars;

use crate::Phrases;

/// Returns a formula in words, or `None` if it is not simple or if sayso has no words for it in this language. Then it is spoken as it is written.
///
/// In a simple formula, each part of a fraction, a root, an exponent or an index is one number, letter or name, so that the words
/// cannot be misunderstood.
pub(super) fn formula_in_words(math: &str, phrases: &Phrases) -> Option<String> {
    let words = match phrases.language() {
        "en" => &ENGLISH,
        "es" => &SPANISH,
        _ => return None,
    };
    if math.chars().count() > MAX_FORMULA_CHARS {
        return None;
    }
    let mut reader = FormulaReader { chars: math.trim().chars().peekable(), words, depth: 0 };
    let parts = reader.read_parts(None)?;
    (!parts.is_empty()).then(|| join(&parts))
}

const MAX_FORMULA_CHARS: usize = 120;
const MAX_DEPTH: u32 = 4;

/// The words of a language.
struct FormulaWords {
    /// Signs and commands, and the words for them.
    signs: [&'static str; SIGNS.len()],
    squared: &'static str,
    cubed: &'static str,
    /// Precedes any other exponent.
    power: &'static str,
    /// Precedes an index.
    index: &'static str,
    /// Precedes the number under a root.
    root: &'static str,
    /// Between the parts of a fraction.
    over: &'static str,
    /// The Greek letters, separated by spaces.
    greek: &'static str,
}

/// The signs and commands that have words, in the order of [`FormulaWords::signs`].
const SIGNS: [&[&str]; 14] = [
    &["+"],
    &["-", "−"],
    &["*", "×", "·", r"\times", r"\cdot"],
    &["÷", r"\div"],
    &["±", r"\pm"],
    &["="],
    &["≠", r"\ne", r"\neq"],
    &["<", r"\lt"],
    &["≤", r"\le", r"\leq"],
    &[">", r"\gt"],
    &["≥", r"\ge", r"\geq"],
    &["≈", r"\approx"],
    &["∞", r"\infty"],
    &["→", r"\to", r"\rightarrow"],
];

const ENGLISH: FormulaWords = FormulaWords {
    signs: [
        "plus",
        "minus",
        "times",
        "divided by",
        "plus or minus",
        "equals",
        "is not equal to",
        "is less than",
        "is at most",
        "is greater than",
        "is at least",
        "is about",
        "infinity",
        "goes to",
    ],
    squared: "squared",
    cubed: "cubed",
    power: "to the power of",
    index: "sub",
    root: "the square root of",
    over: "over",
    greek: "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau upsilon phi chi psi omega",
};

const SPANISH: FormulaWords = FormulaWords {
    signs: [
        "más",
        "menos",
        "por",
        "dividido entre",
        "más o menos",
        "es igual a",
        "no es igual a",
        "es menor que",
        "es como máximo",
        "es mayor que",
        "es como mínimo",
        "es aproximadamente",
        "infinito",
        "tiende a",
    ],
    squared: "al cuadrado",
    cubed: "al cubo",
    power: "elevado a",
    index: "sub",
    root: "la raíz cuadrada de",
    over: "sobre",
    greek: "alfa beta gamma delta épsilon dseta eta zeta iota kappa lambda mi ni xi ómicron pi ro sigma tau ípsilon fi ji psi omega",
};

/// The Greek letters as LaTeX names them, in the order of [`FormulaWords::greek`].
const GREEK_COMMANDS: &str = ENGLISH.greek;
const GREEK_LETTERS: &str = "αβγδεζηθικλμνξοπρστυφχψω";
/// Names that are spoken as they are written.
const FUNCTIONS: [&str; 7] = ["sin", "cos", "tan", "log", "ln", "max", "min"];
/// Commands that change only how a formula looks.
const SILENT_COMMANDS: [&str; 4] = ["left", "right", "quad", "displaystyle"];

struct FormulaReader<'f> {
    chars: Peekable<Chars<'f>>,
    words: &'static FormulaWords,
    depth: u32,
}

impl FormulaReader<'_> {
    /// Reads parts until a closing character, or until the end.
    fn read_parts(&mut self, until: Option<char>) -> Option<Vec<String>> {
        let mut parts = Vec::new();
        loop {
            let Some(next) = self.chars.next() else { return until.is_none().then_some(parts) };
            if Some(next) == until {
                return Some(parts);
            }
            match next {
                ' ' => {}
                '^' => match self.read_argument()?.as_str() {
                    "2" => parts.push(self.words.squared.to_owned()),
                    "3" => parts.push(self.words.cubed.to_owned()),
                    exponent => parts.push(format!("{} {exponent}", self.words.power)),
                },
                '_' => {
                    let index = self.read_argument()?;
                    parts.push(format!("{} {index}", self.words.index));
                }
                '/' => parts.push(self.words.over.to_owned()),
                '(' | ')' | '[' | ']' | ',' | '%' | '!' | '|' => parts.push(next.to_string()),
                _ => parts.extend(self.read_atom(next)?),
            }
        }
    }

    /// Reads a number, a letter, a sign, a command or a group.
    fn read_atom(&mut self, first: char) -> Option<Vec<String>> {
        if first.is_ascii_digit() {
            let mut number = first.to_string();
            while let Some(next) = self.chars.next_if(|next| next.is_ascii_digit() || *next == '.') {
                number.push(next);
            }
            return Some(vec![number]);
        }
        if first == '{' {
            return self.nested(|reader| reader.read_parts(Some('}')));
        }
        if first == '\\' {
            return self.read_command();
        }
        if let Some(word) = self.sign(&first.to_string()) {
            return Some(vec![word.to_owned()]);
        }
        let greek = GREEK_LETTERS.chars().position(|letter| letter == first);
        if let Some(name) = greek.and_then(|at| self.words.greek.split(' ').nth(at)) {
            return Some(vec![name.to_owned()]);
        }
        // Several letters are a name, such as `total`.
        let mut name = first.to_string();
        while let Some(next) =
            self.chars.next_if(|next| next.is_alphabetic() && !GREEK_LETTERS.contains(*next))
        {
            name.push(next);
        }
        first.is_alphabetic().then(|| vec![name])
    }

    fn read_command(&mut self) -> Option<Vec<String>> {
        let mut name = String::new();
        while let Some(next) = self.chars.next_if(char::is_ascii_alphabetic) {
            name.push(next);
        }
        if name.is_empty() {
            // Spaces, and signs that LaTeX would otherwise read as commands.
            return match self.chars.next()? {
                ',' | ';' | ':' | '!' | ' ' => Some(Vec::new()),
                sign @ ('%' | '$') => Some(vec![sign.to_string()]),
                _ => None,
            };
        }
        let lower = name.to_ascii_lowercase();
        let greek = GREEK_COMMANDS.split(' ').position(|command| command == lower);
        if let Some(letter) = greek.and_then(|at| self.words.greek.split(' ').nth(at)) {
            return Some(vec![letter.to_owned()]);
        }
        if let Some(word) = self.sign(&format!("\\{name}")) {
            return Some(vec![word.to_owned()]);
        }
        match name.as_str() {
            "frac" | "dfrac" | "tfrac" => {
                let (numerator, denominator) = (self.read_argument()?, self.read_argument()?);
                Some(vec![format!("{numerator} {} {denominator}", self.words.over)])
            }
            "sqrt" => {
                let number = self.read_argument()?;
                Some(vec![format!("{} {number}", self.words.root)])
            }
            "text" | "mathrm" => {
                self.chars.next_if_eq(&'{')?;
                let text: String = self.chars.by_ref().take_while(|next| *next != '}').collect();
                Some(vec![text.trim().to_owned()]).filter(|_| !text.contains(['\\', '$']))
            }
            _ if FUNCTIONS.contains(&name.as_str()) => Some(vec![name]),
            _ if SILENT_COMMANDS.contains(&name.as_str()) => Some(Vec::new()),
            _ => None,
        }
    }

    /// Reads the argument of a command, an exponent or an index: one number, letter or name, with an optional minus.
    fn read_argument(&mut self) -> Option<String> {
        while self.chars.next_if_eq(&' ').is_some() {}
        let first = self.chars.next()?;
        if first.is_ascii_alphabetic() {
            return Some(first.to_string());
        }
        let parts = self.nested(|reader| reader.read_atom(first))?;
        let minus = self.sign("-");
        match &parts[..] {
            [one] => Some(one.clone()).filter(|one| !one.contains(' ')),
            [sign, one] if Some(sign.as_str()) == minus && !one.contains(' ') => {
                Some(format!("{sign} {one}"))
            }
            _ => None,
        }
    }

    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.depth += 1;
        let result = if self.depth > MAX_DEPTH { None } else { read(self) };
        self.depth -= 1;
        result
    }

    fn sign(&self, sign: &str) -> Option<&'static str> {
        let at = SIGNS.iter().position(|signs| signs.contains(&sign))?;
        self.words.signs.get(at).copied()
    }
}

/// Joins the parts with spaces, but without a space inside brackets and before a comma.
fn join(parts: &[String]) -> String {
    let mut text = String::new();
    for part in parts {
        let is_attached = [")", "]", ",", "%", "!"].contains(&part.as_str());
        if !text.is_empty() && !is_attached && !text.ends_with(['(', '[']) {
            text.push(' ');
        }
        text.push_str(part);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spoken(language: &str, math: &str) -> Option<String> {
        formula_in_words(math, Phrases::for_languages(&[language.to_owned()]))
    }

    #[test]
    fn simple_formulas_are_spoken_in_words() {
        for (math, english, spanish) in [
            (
                "x^2 + y^2 = z^2",
                "x squared plus y squared equals z squared",
                "x al cuadrado más y al cuadrado es igual a z al cuadrado",
            ),
            (r"\frac{1}{2} \le \alpha", "1 over 2 is at most alpha", "1 sobre 2 es como máximo alfa"),
            (r"e^{-x}", "e to the power of minus x", "e elevado a menos x"),
            (r"a_1 \ne b_{n}", "a sub 1 is not equal to b sub n", "a sub 1 no es igual a b sub n"),
            (
                r"\sqrt{2} \approx 1.41",
                "the square root of 2 is about 1.41",
                "la raíz cuadrada de 2 es aproximadamente 1.41",
            ),
            (r"2\pi r \geq 3", "2 pi r is at least 3", "2 pi r es como mínimo 3"),
            ("f(x, y) < ∞", "f (x, y) is less than infinity", "f (x, y) es menor que infinito"),
            (r"x^3 \to \text{ big }", "x cubed goes to big", "x al cubo tiende a big"),
            (r"5\%", "5%", "5%"),
            ("E=mc^2", "E equals mc squared", "E es igual a mc al cuadrado"),
            ("total = a/b", "total equals a over b", "total es igual a a sobre b"),
        ] {
            assert_eq!(spoken("en", math).as_deref(), Some(english), "{math}");
            assert_eq!(spoken("es", math).as_deref(), Some(spanish), "{math}");
        }
    }

    #[test]
    fn a_formula_that_words_could_make_ambiguous_stays_as_it_is() {
        for math in [
            r"\frac{a+b}{c}",
            "x^{n+1}",
            r"\sqrt{x+1}",
            r"\sum_{i=1}^{n} i",
            r"\begin{matrix}1\end{matrix}",
            "{x",
            r"\frac{1}",
            "x^",
            "x & y",
            "{{{{{x}}}}}",
            "",
            &"x".repeat(MAX_FORMULA_CHARS + 1),
        ] {
            assert_eq!(spoken("en", math), None, "{math}");
        }
        assert_eq!(spoken("yo", "x^2"), None, "there are no Yoruba words yet");
    }

    proptest::proptest! {
        #[test]
        fn any_formula_can_be_read(math in r"[\\a-c{}^_ 0-9+/()fracsqrt]{0,30}") {
            spoken("en", &math);
        }
    }
}
