//! MCP servers in the configuration file of Codex.

use toml_edit::{Array, DocumentMut, Item, TableLike, Value, value};

use super::mcp_client::{McpOptions, McpServer, ServerCommand, ServerMembers};

/// The table that contains the servers.
const SERVERS: &str = "mcp_servers";

/// Starts every server that can be wrapped through `sayso mcp`. Returns the new text.
pub(crate) fn wrap(text: &str, program: &str, options: &McpOptions) -> Result<String, String> {
    edit(text, |name, server, table| {
        if server.unwrap().is_some() {
            return;
        }
        let Some(words) = server.wrapping_arguments(name, options) else { return };
        match server {
            ServerCommand::Stdio { .. } => {
                set_text(table, "command", program);
                match table.get_mut("args").and_then(Item::as_array_mut) {
                    Some(arguments) => {
                        if let Some(first) = arguments.get_mut(0)
                            && prefix(first) == Some("")
                        {
                            first.decor_mut().set_prefix(" ");
                        }
                        words
                            .iter()
                            .enumerate()
                            .for_each(|(index, word)| arguments.insert(index, word.as_str()));
                    }
                    None => {
                        table.insert("args", value(words.iter().collect::<Array>()));
                    }
                }
            }
            ServerCommand::Http { .. } => {
                let comments = remove_member(table, "url");
                table.insert("command", value(program));
                table.insert("args", value(words.iter().collect::<Array>()));
                comments.restore(table, "command", "args");
            }
            ServerCommand::Unsupported(_) => {}
        }
    })
}

/// Starts every server directly again. Returns the new text.
pub(crate) fn unwrap(text: &str) -> Result<String, String> {
    edit(text, |_, server, table| {
        let Some((original, own_arguments)) = server.unwrap() else { return };
        match original {
            ServerCommand::Stdio { command, arguments: rest } => {
                set_text(table, "command", &command);
                if rest.is_empty() && !has_comments(table, "args") {
                    table.remove("args");
                } else if let Some(arguments) = table.get_mut("args").and_then(Item::as_array_mut) {
                    (0..own_arguments).for_each(|_| drop(arguments.remove(0)));
                    // The separator before the first argument of the server is not needed any more.
                    if let Some(first) = arguments.get_mut(0)
                        && prefix(first) == Some(" ")
                    {
                        first.decor_mut().set_prefix("");
                    }
                }
            }
            ServerCommand::Http { url } => {
                let before = remove_member(table, "command");
                let after = remove_member(table, "args");
                table.insert("url", value(url));
                Comments { before: before.before + &after.before, after: before.after + &after.after }
                    .restore(table, "url", "url");
            }
            ServerCommand::Unsupported(_) => {}
        }
    })
}

/// Returns the start command of every server.
pub(crate) fn start_commands(text: &str) -> Result<Vec<ServerCommand>, String> {
    let document = parse(text)?;
    let servers = document.get(SERVERS).and_then(Item::as_table_like).into_iter().flat_map(TableLike::iter);
    Ok(servers.filter_map(|(_, item)| Some(read_server(item.as_table_like()?))).collect())
}

/// Returns the servers and how they are started.
pub(crate) fn servers(text: &str) -> Result<Vec<McpServer>, String> {
    let document = parse(text)?;
    let servers = document.get(SERVERS).and_then(Item::as_table_like);
    let servers = servers.into_iter().flat_map(TableLike::iter).filter_map(|(name, item)| {
        let state = read_server(item.as_table_like()?).state();
        Some(McpServer { name: name.to_owned(), state })
    });
    Ok(servers.collect())
}

/// Returns whether the configuration switches hooks off.
pub(crate) fn are_hooks_disabled(text: &str) -> Result<bool, String> {
    let document = parse(text)?;
    let features = document.get("features").and_then(Item::as_table_like);
    let is_off =
        |name| features.and_then(|features| features.get(name)).and_then(Item::as_bool) == Some(false);
    Ok(is_off("hooks") || is_off("codex_hooks"))
}

/// Returns whether `[hooks.state]` says that the user trusted all hooks with these keys.
pub(crate) fn trusts_hooks(text: &str, keys: &[String]) -> Result<bool, String> {
    let document = parse(text)?;
    let hooks = document.get("hooks").and_then(Item::as_table_like);
    let state = hooks.and_then(|hooks| hooks.get("state")).and_then(Item::as_table_like);
    let is_trusted = |key: &String| {
        let state = state.and_then(|state| state.get(key)).and_then(Item::as_table_like);
        state.is_some_and(|state| state.get("trusted_hash").is_some())
    };
    Ok(keys.iter().all(is_trusted))
}

fn edit(
    text: &str,
    mut edit_server: impl FnMut(&str, &ServerCommand, &mut dyn TableLike),
) -> Result<String, String> {
    // The library writes all line ends as line feeds.
    let is_windows = text.contains("\r\n");
    let unix_text = text.replace("\r\n", "\n");
    let mut document = parse(&unix_text)?;
    if document.to_string() != unix_text || (is_windows && unix_text.replace('\n', "\r\n") != text) {
        return Err("its line ends or other white space would change".to_owned());
    }
    if let Some(servers) = document.get_mut(SERVERS).and_then(Item::as_table_like_mut) {
        for (name, item) in servers.iter_mut() {
            if let Some(table) = item.as_table_like_mut() {
                let server = read_server(table);
                edit_server(name.get(), &server, table);
            }
        }
    }
    let edited = document.to_string();
    check_other_values(&unix_text, &edited)?;
    Ok(if is_windows { edited.replace('\n', "\r\n") } else { edited })
}

fn parse(text: &str) -> Result<DocumentMut, String> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        let line = error
            .span()
            .map_or(1, |span| text.get(..span.start).unwrap_or_default().matches('\n').count() + 1);
        format!("it is not valid TOML (line {line}: {})", error.message().replace('\n', ", "))
    })
}

fn read_server(table: &(impl TableLike + ?Sized)) -> ServerCommand {
    let text = |name: &str| table.get(name).and_then(Item::as_str).map(str::to_owned);
    let arguments = match table.get("args") {
        None => Some(Vec::new()),
        Some(item) => item
            .as_array()
            .and_then(|array| array.iter().map(|word| word.as_str().map(str::to_owned)).collect()),
    };
    let has_credentials = ["bearer_token", "bearer_token_env_var", "http_headers", "env_http_headers"]
        .into_iter()
        .any(|name| table.get(name).is_some());
    ServerMembers { command: text("command"), arguments, url: text("url"), transport: None, has_credentials }
        .to_command()
}

/// Returns the white space and comments before a value.
fn prefix(value: &Value) -> Option<&str> {
    value.decor().prefix().map(|prefix| prefix.as_str().unwrap_or_default())
}

/// The white space and comments before and after a member.
#[derive(Default)]
struct Comments {
    before: String,
    after: String,
}

impl Comments {
    fn of(table: &dyn TableLike, name: &str) -> Self {
        let text = |text: Option<&toml_edit::RawString>| {
            text.and_then(|text| text.as_str()).unwrap_or_default().to_owned()
        };
        let before = table.key(name).map(|key| text(key.leaf_decor().prefix())).unwrap_or_default();
        let member = table.get(name).and_then(Item::as_value);
        let after = member.map(|value| text(value.decor().suffix())).unwrap_or_default();
        Self { before, after }
    }

    /// Puts the comments before and after other members. Without comments, those get the usual white space.
    fn restore(&self, table: &mut dyn TableLike, first: &str, last: &str) {
        if self.before.contains('#')
            && let Some(mut key) = table.key_mut(first)
        {
            key.leaf_decor_mut().set_prefix(self.before.as_str());
        }
        if self.after.contains('#')
            && let Some(value) = table.get_mut(last).and_then(Item::as_value_mut)
        {
            value.decor_mut().set_suffix(self.after.as_str());
        }
    }
}

fn remove_member(table: &mut dyn TableLike, name: &str) -> Comments {
    let comments = Comments::of(table, name);
    table.remove(name);
    comments
}

fn has_comments(table: &dyn TableLike, name: &str) -> bool {
    let Comments { before, after } = Comments::of(table, name);
    // A text can contain the sign as well. Then the member is kept unnecessarily, which does no harm.
    let value = table.get(name).map(ToString::to_string).unwrap_or_default();
    [before, after, value].iter().any(|text| text.contains('#'))
}

/// Sets a text, and keeps the white space and comments around it.
fn set_text(table: &mut dyn TableLike, name: &str, text: &str) {
    if let Some(Item::Value(current)) = table.get_mut(name) {
        let decor = current.decor().clone();
        *current = Value::from(text);
        *current.decor_mut() = decor;
    }
}

/// Checks that an edited text is valid and that only the start of servers differs. A text that fails is never written.
fn check_other_values(before: &str, after: &str) -> Result<(), String> {
    if normalized(before)? == normalized(after)? {
        return Ok(());
    }
    Err("the edit would have changed other values".to_owned())
}

/// Returns every value with its path, in which every server is written in the same way, whether it is wrapped or not.
fn normalized(text: &str) -> Result<Vec<String>, String> {
    let document = parse(text)?;
    let mut values = Vec::new();
    for (name, item) in document.iter() {
        if name != SERVERS {
            collect_values(name, item, &mut values);
            continue;
        }
        for (name, item) in item.as_table_like().into_iter().flat_map(TableLike::iter) {
            let path = format!("{SERVERS} {name:?}");
            let server = item.as_table_like().map(read_server);
            let server = server.map(|server| server.unwrap().map_or(server, |(original, _)| original));
            match (server, item.as_table_like()) {
                (Some(server @ (ServerCommand::Stdio { .. } | ServerCommand::Http { .. })), Some(table)) => {
                    values.push(format!("{path} {server:?}"));
                    for (name, item) in
                        table.iter().filter(|(name, _)| !["command", "args", "url"].contains(name))
                    {
                        collect_values(&format!("{path} {name:?}"), item, &mut values);
                    }
                }
                _ => collect_values(&path, item, &mut values),
            }
        }
    }
    values.sort();
    Ok(values)
}

fn collect_values(path: &str, item: &Item, values: &mut Vec<String>) {
    if let Some(table) = item.as_table_like() {
        values.push(format!("{path} table"));
        for (name, item) in table.iter() {
            collect_values(&format!("{path} {name:?}"), item, values);
        }
    } else if let Some(tables) = item.as_array_of_tables() {
        for (index, table) in tables.iter().enumerate() {
            for (name, item) in table {
                collect_values(&format!("{path} {index} {name:?}"), item, values);
            }
        }
    } else {
        values.push(format!("{path} {}", item.to_string().trim()));
    }
}
