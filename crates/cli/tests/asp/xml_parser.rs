//! A well-formedness check for the XML that sayso writes: elements, attributes, text and the five entities.

/// An element with its attributes and the text directly inside.
pub(crate) struct Element {
    pub(crate) name: String,
    pub(crate) attributes: Vec<(String, String)>,
    pub(crate) text: String,
}

/// Returns the elements in the order in which they end, or why the text is not well-formed.
pub(crate) fn read(xml: &str) -> Result<Vec<Element>, String> {
    let is_allowed = |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..);
    if let Some(invalid) = xml.chars().find(|c| !is_allowed(*c)) {
        return Err(format!("{invalid:?} is not allowed in XML"));
    }
    let (mut open, mut closed): (Vec<Element>, Vec<Element>) = (Vec::new(), Vec::new());
    let mut rest = xml;
    while let Some(at) = rest.find('<') {
        let (text, tag) = rest.split_at(at);
        let text = unescape(text)?;
        match open.last_mut() {
            Some(element) => element.text += &text,
            None if text.trim().is_empty() => {}
            None => return Err(format!("text outside the root: {text:?}")),
        }
        let end = tag.find('>').ok_or("an unterminated tag")?;
        let inside = &tag[1..end];
        rest = &tag[end + 1..];
        if let Some(name) = inside.strip_prefix('/') {
            let element = open.pop().ok_or_else(|| format!("</{name}> without a start tag"))?;
            if element.name != name {
                return Err(format!("</{name}> closes <{}>", element.name));
            }
            closed.push(element);
            continue;
        }
        if open.is_empty() && !closed.is_empty() {
            return Err("a second root".to_owned());
        }
        let (inside, is_empty) = inside.strip_suffix('/').map_or((inside, false), |inside| (inside, true));
        let (name, attributes) = inside.split_once([' ', '\n']).unwrap_or((inside, ""));
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric()) {
            return Err(format!("invalid element name: {name:?}"));
        }
        let element =
            Element { name: name.to_owned(), attributes: parse_attributes(attributes)?, text: String::new() };
        if is_empty { closed.push(element) } else { open.push(element) }
    }
    match open.pop() {
        Some(element) => Err(format!("<{}> is not closed", element.name)),
        None if rest.trim().is_empty() && !closed.is_empty() => Ok(closed),
        None => Err(format!("no root, or content after the root: {rest:?}")),
    }
}

fn parse_attributes(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut attributes: Vec<(String, String)> = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (name, after) = rest.split_once("=\"").ok_or_else(|| format!("invalid attribute: {rest:?}"))?;
        let (value, after) = after.split_once('"').ok_or_else(|| format!("unterminated value of {name}"))?;
        if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
            return Err(format!("invalid attribute name: {name:?}"));
        }
        if attributes.iter().any(|(known, _)| known == name) {
            return Err(format!("duplicate attribute {name}"));
        }
        attributes.push((name.to_owned(), unescape(value)?));
        rest = after.trim_start();
    }
    Ok(attributes)
}

fn unescape(text: &str) -> Result<String, String> {
    let mut parts = text.split('&');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (entity, after) = part.split_once(';').ok_or_else(|| format!("a bare & before {part:?}"))?;
        out.push(match entity {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "#39" => '\'',
            other => return Err(format!("unknown entity {other:?}")),
        });
        out += after;
    }
    Ok(out)
}

#[test]
fn the_parser_accepts_good_and_rejects_bad_xml() {
    let elements = read("<a b=\"1 &amp; 2\"><c/>x &lt; y</a>\n").unwrap();
    assert_eq!((elements[1].text.as_str(), elements[1].attributes[0].1.as_str()), ("x < y", "1 & 2"));
    let invalid = [
        "",
        "text",
        "<a>",
        "</a>",
        "<a></b>",
        "<a><b></a></b>",
        "<a/><b/>",
        "<a>&</a>",
        "<a>&nbsp;</a>",
        "<a>\u{1}</a>",
        "<a>\u{FFFF}</a>",
        "<a b=c/>",
        "<a b=\"1\" b=\"2\"/>",
        "<a b=\"1/>",
        "<a",
        "<a/>x",
    ];
    for xml in invalid {
        assert!(read(xml).is_err(), "{xml:?} passed");
    }
}
