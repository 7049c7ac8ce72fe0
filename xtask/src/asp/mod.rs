//! Documents about npayload ASP that are generated from the code: the diagram and tables of `docs/asp.md`, and the test
//! vectors in `docs/asp-vectors.json`.

mod page;
mod vectors;

use crate::stage::root;

const PAGE: &str = "docs/asp.md";
const VECTORS: &str = "docs/asp-vectors.json";
const BEGIN: &str = "<!-- start of the part that cargo xtask asp generates -->";
const END: &str = "<!-- end of the part that cargo xtask asp generates -->";

/// Writes both documents.
pub(crate) fn write() -> Result<(), String> {
    for (path, text) in generated_files()? {
        std::fs::write(root().join(path), text).map_err(|error| format!("{path}: {error}"))?;
    }
    Ok(())
}

/// Checks that both documents are up to date.
pub(crate) fn check() -> Result<(), String> {
    for (path, text) in generated_files()? {
        if read(path)? != text {
            return Err(format!("{path} is stale: run `cargo xtask asp`"));
        }
    }
    page::check_decisions(&read(PAGE)?)
}

fn generated_files() -> Result<[(&'static str, String); 2], String> {
    let old = read(PAGE)?;
    let (before, rest) = old.split_once(BEGIN).ok_or(format!("{PAGE} has no line {BEGIN}"))?;
    let (_, after) = rest.split_once(END).ok_or(format!("{PAGE} has no line {END}"))?;
    let page = format!("{before}{BEGIN}\n\n{}\n{END}{after}", page::generate());
    Ok([(PAGE, page), (VECTORS, vectors::generate()?)])
}

fn read(path: &str) -> Result<String, String> {
    std::fs::read_to_string(root().join(path)).map_err(|error| format!("{path}: {error}"))
}
