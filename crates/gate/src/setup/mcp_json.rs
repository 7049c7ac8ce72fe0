//! MCP servers in JSON configuration files.

use std::ops::Range;

use jsonc_parser::ast::{Object, ObjectProp};
use seal::json::JsonWriter;

use super::jsonc::{Json, SyntaxTree, find_array, find_member, find_object, split_byte_order_mark, to_range};
use super::mcp_client::{McpClient, McpOptions, McpServer, ServerCommand, ServerMembers};

/// A replacement of a range of the text.
type Replacement = (Range<usize>, String);

/// Wraps every server that can be wrapped, so that the client starts it through `sayso mcp`. Returns the new text.
pub(crate) fn wrap(
    client: McpClient,
    text: &str,
    program: &str,
    options: &McpOptions,
) -> Result<String, String> {
    edit(client, text, |_, name, server, object, replacements| {
        if server.unwrap().is_some() {
            return Ok(());
        }
        let Some(words) = server.wrapping_arguments(name, options) else { return Ok(()) };
        let list = words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(", ");
        match server {
            ServerCommand::Stdio { .. } => {
                let Some(command) = find_member(object, "command")? else { return Ok(()) };
                replacements.push((to_range(&command.value), quote(program)));
                if let Some(arguments) = find_array(object, "args")? {
                    let start = arguments.range.start + 1;
                    let separator = if arguments.elements.is_empty() { "" } else { ", " };
                    replacements.push((start..start, list + separator));
                } else {
                    let end = command.range.end;
                    replacements.push((end..end, format!(", \"args\": [{list}]")));
                }
            }
            ServerCommand::Http { .. } => {
                let Some(url) = find_member(object, "url")? else { return Ok(()) };
                let members = format!("\"command\": {}, \"args\": [{list}]", quote(program));
                replacements.push((to_range(url), members));
                if let Some(transport) = find_member(object, "type")? {
                    replacements.push((to_range(&transport.value), quote("stdio")));
                }
            }
            ServerCommand::Unsupported(_) => {}
        }
        Ok(())
    })
}

/// Undoes [`wrap`], so that the client starts every server directly. Returns the new text.
pub(crate) fn unwrap(client: McpClient, text: &str) -> Result<String, String> {
    edit(client, text, |tree, _, server, object, replacements| {
        let Some((original, own_arguments)) = server.unwrap() else { return Ok(()) };
        let (Some(command), Some(arguments)) = (find_member(object, "command")?, find_array(object, "args")?)
        else {
            return Ok(());
        };
        match original {
            ServerCommand::Stdio { command: original, arguments: rest } => {
                replacements.push((to_range(&command.value), quote(&original)));
                let deletions = if rest.is_empty() && !tree.has_comments(&to_range(arguments), &[]) {
                    delete_member(tree, object, "args")?
                } else {
                    let items: Vec<_> = arguments.elements.iter().map(to_range).collect();
                    let is_own: Vec<_> = (0..items.len()).map(|index| index < own_arguments).collect();
                    tree.deletions(&items, &is_own)
                };
                replacements.extend(deletions.into_iter().map(|range| (range, String::new())));
            }
            ServerCommand::Http { url } => {
                replacements.push((to_range(command), format!("\"url\": {}", quote(&url))));
                let deletions = delete_member(tree, object, "args")?;
                replacements.extend(deletions.into_iter().map(|range| (range, String::new())));
                if let Some(transport) = find_member(object, "type")? {
                    replacements.push((to_range(&transport.value), quote("http")));
                }
            }
            ServerCommand::Unsupported(_) => {}
        }
        Ok(())
    })
}

/// Returns the start command of every server.
pub(crate) fn start_commands(client: McpClient, text: &str) -> Result<Vec<ServerCommand>, String> {
    let tree = SyntaxTree::parse(split_byte_order_mark(text).1)?;
    server_objects(client, tree.root())?.into_iter().map(|(_, object)| read_server(object)).collect()
}

/// Returns the servers and how they are started.
pub(crate) fn servers(client: McpClient, text: &str) -> Result<Vec<McpServer>, String> {
    let tree = SyntaxTree::parse(split_byte_order_mark(text).1)?;
    let mut servers = Vec::new();
    for (name, object) in server_objects(client, tree.root())? {
        servers.push(McpServer { name: name.to_owned(), state: read_server(object)?.state() });
    }
    Ok(servers)
}

fn edit(
    client: McpClient,
    text: &str,
    mut edit_server: impl FnMut(
        &SyntaxTree<'_>,
        &str,
        &ServerCommand,
        &Object<'_>,
        &mut Vec<Replacement>,
    ) -> Result<(), String>,
) -> Result<String, String> {
    let (mark, json) = split_byte_order_mark(text);
    let tree = SyntaxTree::parse(json)?;
    let mut replacements = Vec::new();
    for (name, object) in server_objects(client, tree.root())? {
        edit_server(&tree, name, &read_server(object)?, object, &mut replacements)?;
    }
    let edited = format!("{mark}{}", replace_ranges(json, replacements));
    check_other_values(client, text, &edited)?;
    Ok(edited)
}

/// Returns the configuration of every server, with its name.
fn server_objects<'o, 't>(
    client: McpClient,
    root: &'o Object<'t>,
) -> Result<Vec<(&'o str, &'o Object<'t>)>, String> {
    let list_name = if client == McpClient::VsCode { "servers" } else { "mcpServers" };
    let mut lists = vec![find_object(root, list_name)?];
    if client == McpClient::Claude
        && let Some(projects) = find_object(root, "projects")?
    {
        for project in &projects.properties {
            lists.push(
                project
                    .value
                    .as_object()
                    .map(|project| find_object(project, list_name))
                    .transpose()?
                    .flatten(),
            );
        }
    }
    let mut servers = Vec::new();
    for list in lists.into_iter().flatten() {
        for property in &list.properties {
            let object = property.value.as_object();
            servers.extend(object.map(|object| (property.name.as_str(), object)));
        }
    }
    Ok(servers)
}

fn read_server(object: &Object<'_>) -> Result<ServerCommand, String> {
    let text = |name: &str| -> Result<Option<String>, String> {
        let value = find_member(object, name)?.map(|property| Json::from(&property.value));
        Ok(value.and_then(|value| value.as_text().map(str::to_owned)))
    };
    let arguments = match find_member(object, "args")? {
        None => Some(Vec::new()),
        Some(property) => {
            Json::from(&property.value).as_texts().map(|texts| texts.into_iter().map(str::to_owned).collect())
        }
    };
    let mut has_credentials = false;
    for name in ["headers", "headersHelper", "oauth", "auth"] {
        has_credentials |= find_member(object, name)?.is_some();
    }
    let members = ServerMembers {
        command: text("command")?,
        arguments,
        url: text("url")?,
        transport: text("type")?,
        has_credentials,
    };
    Ok(members.to_command())
}

fn delete_member(
    tree: &SyntaxTree<'_>,
    object: &Object<'_>,
    name: &str,
) -> Result<Vec<Range<usize>>, String> {
    find_member(object, name)?;
    let ranges: Vec<_> = object.properties.iter().map(to_range).collect();
    let is_removed: Vec<_> =
        object.properties.iter().map(|property: &ObjectProp<'_>| property.name.as_str() == name).collect();
    Ok(tree.deletions(&ranges, &is_removed))
}

/// Replaces ranges of a text. Where ranges overlap, the later one counts only from the end of the earlier one.
fn replace_ranges(text: &str, mut replacements: Vec<Replacement>) -> String {
    replacements.sort_by_key(|(range, _)| (range.start, range.end));
    let (mut result, mut end) = (String::with_capacity(text.len()), 0);
    for (range, replacement) in replacements {
        result.push_str(text.get(end..range.start).unwrap_or_default());
        result.push_str(&replacement);
        end = end.max(range.end);
    }
    result.push_str(text.get(end..).unwrap_or_default());
    result
}

/// Checks that an edited text is valid and differs only in how servers are started. A text that fails is never written.
fn check_other_values(client: McpClient, before: &str, after: &str) -> Result<(), String> {
    if normalized(client, before)? == normalized(client, after)? {
        return Ok(());
    }
    Err("the edit would have changed other values".to_owned())
}

/// Parses a text and unwraps every wrapped server in the result, so that two texts can be compared.
fn normalized(client: McpClient, text: &str) -> Result<Json, String> {
    let tree = SyntaxTree::parse(split_byte_order_mark(text).1)?;
    let mut original_commands = Vec::new();
    for (_, object) in server_objects(client, tree.root())? {
        let server = read_server(object)?;
        let server = server.unwrap().map_or(server, |(original, _)| original);
        original_commands.push((to_range(object), server));
    }
    Ok(normalize_object(tree.root(), &original_commands))
}

fn normalize_object(object: &Object<'_>, original_commands: &[(Range<usize>, ServerCommand)]) -> Json {
    let range = to_range(object);
    let server = original_commands.iter().find(|(server, _)| *server == range).map(|(_, command)| command);
    let is_command_member = |name: &str| {
        matches!(server, Some(ServerCommand::Stdio { .. } | ServerCommand::Http { .. }))
            && matches!(name, "command" | "args" | "url" | "type")
    };
    let mut members = Vec::new();
    for property in &object.properties {
        let name = property.name.as_str();
        if is_command_member(name) {
            continue;
        }
        let value = match property.value.as_object() {
            Some(object) => normalize_object(object, original_commands),
            None => Json::from(&property.value),
        };
        members.push((name.to_owned(), value));
    }
    match server {
        Some(ServerCommand::Stdio { command, arguments }) => {
            members.push(("command".to_owned(), Json::text(command.as_str())));
            members.push(("args".to_owned(), Json::texts(arguments.iter().map(String::as_str))));
        }
        Some(ServerCommand::Http { url }) => members.push(("url".to_owned(), Json::text(url.as_str()))),
        _ => {}
    }
    Json::Object(members)
}

fn quote(text: &str) -> String {
    let mut writer = JsonWriter::with_capacity(text.len() + 2);
    writer.text(text);
    writer.finish()
}
