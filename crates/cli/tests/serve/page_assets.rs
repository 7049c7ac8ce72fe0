//! The files of the listening page: which files are served, with which headers, and that no other path is served.

use crate::serve::sign_in::sign_in;
use testing::cli::create_token;
use testing::http::TestResponse;
use testing::hub::HubProcess;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

fn header<'a>(response: &'a TestResponse, name: &str) -> &'a str {
    let found = response.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    found.unwrap_or_else(|| panic!("no {name} in {response:?}"))
}

/// Returns the files that a page file refers to.
fn referenced_files(body: &str) -> Vec<String> {
    let is_file = |text: &&str| matches!(text.rsplit('.').next(), Some("js" | "css" | "svg"));
    let quoted = body.split('"').filter(is_file);
    quoted.map(|text| text.replace("./", "/page/")).collect()
}

#[test]
fn the_page_and_its_files_have_a_strict_policy() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let mut pending = vec!["/".to_owned()];
    let mut seen = Vec::new();
    while let Some(path) = pending.pop() {
        if seen.contains(&path) {
            continue;
        }
        let response = client.get(&path);
        assert_eq!(response.status, 200, "{path}");
        assert_eq!(header(&response, "Content-Security-Policy"), POLICY);
        assert_eq!(header(&response, "X-Content-Type-Options"), "nosniff");
        assert_eq!(header(&response, "Referrer-Policy"), "no-referrer");
        assert_eq!(header(&response, "Cache-Control"), "no-cache");
        assert!(
            !response.head.contains("Set-Cookie") && !response.head.contains("no-store"),
            "{}",
            response.head
        );
        let media_type = match path.rsplit('.').next() {
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            _ => "text/html; charset=utf-8",
        };
        assert_eq!(header(&response, "Content-Type"), media_type, "{path}");
        // The page contains no inline script or style, which the policy would block.
        for inline in ["<script>", "<style", " style=", " onclick="] {
            assert!(!response.body.contains(inline), "{path}: {inline}");
        }
        pending.extend(referenced_files(&response.body));
        seen.push(path);
    }
    for file in ["/page/page.css", "/page/main.js", "/page/subscriber.js"] {
        assert!(seen.iter().any(|path| path == file), "{file}: {seen:?}");
    }
}

#[test]
fn an_unchanged_file_is_not_sent_again() {
    let hub = HubProcess::start_in_memory();
    for path in ["/", "/page/main.js"] {
        let first = hub.client().get(path);
        let tag = header(&first, "ETag").to_owned();
        for tags in [tag.clone(), format!("\"other\", W/{tag}"), "*".to_owned()] {
            let again = hub.client().with_header(&format!("If-None-Match: {tags}")).get(path);
            assert_eq!((again.status, again.body.as_str()), (304, ""), "{tags}: {again:?}");
            assert!(!again.head.contains("Content-Length"), "{}", again.head);
            assert_eq!(header(&again, "ETag"), tag);
        }
        let changed = hub.client().with_header("If-None-Match: \"other\"").get(path);
        assert_eq!((changed.status, changed.body), (200, first.body));
    }
}

#[test]
fn head_returns_the_headers_of_get() {
    let hub = HubProcess::start_in_memory();
    for path in ["/", "/page/page.css"] {
        let full = hub.client().get(path);
        let request = format!("HEAD {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", hub.address);
        let head = hub.client().send_raw(request.as_bytes());
        assert_eq!(head, format!("{}\r\n\r\n", full.head), "{path}");
        assert!(full.head.contains(&format!("Content-Length: {}", full.body.len())));
    }
}

#[test]
fn no_other_path_or_method_is_served() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    for path in [
        "/index.html",
        "/page",
        "/page/",
        "/page/index.html",
        "/page/package.json",
        "/page/tests/subscriber.test.js",
        "/page/../page/main.js",
        "/page/%6dain.js",
        "/page/main.js/",
        "//page/main.js",
        "/PAGE/MAIN.JS",
        "/Cargo.toml",
        "/favicon.ico",
    ] {
        assert_eq!(client.get(path).status, 404, "{path}");
    }
    for (method, path) in
        [("POST", "/"), ("PUT", "/"), ("DELETE", "/page/main.js"), ("POST", "/page/page.css")]
    {
        assert_eq!(client.send(method, path, "").status, 405, "{method} {path}");
    }
    assert_eq!(client.get("/?x=1").status, 400);
    assert_eq!(client.get("/?token=abc").status, 400);
    assert_eq!(client.with_header("Host: elsewhere.example").get("/").status, 421);
}

#[test]
fn markdown_is_parsed_for_the_page() {
    let hub = HubProcess::start_in_memory();
    let response = hub.client().post(
        "/page/markdown",
        r#"{"parts":["[a](https://example.org) **b**","!"],"complete":true,"language":"es"}"#,
    );
    assert_eq!(
        (response.status, response.body.as_str()),
        (
            200,
            r#"{"blocks":[{"kind":"paragraph","children":[{"kind":"link","href":"https://example.org","children":["a"]}," ",{"kind":"strong","children":["b"]},"!"]}],"spoken":"a b!\n\n","held":false}"#
        )
    );
    let too_long = format!(r#"{{"parts":["{}"],"complete":true,"language":"en"}}"#, "x".repeat(262_145));
    for body in
        ["", "[]", r#"{"parts":["x"]}"#, r#"{"parts":[1],"complete":true,"language":"en"}"#, &too_long]
    {
        let response = hub.client().post("/page/markdown", body);
        assert!([400, 413].contains(&response.status), "{response:?}");
    }
    // Nesting is limited, so that neither the hub nor the page runs out of stack.
    let nested = serde_json::json!({ "parts": [">".repeat(20_000)], "complete": true, "language": "en" });
    let response = hub.client().post("/page/markdown", &nested.to_string());
    assert_eq!((response.status, response.body.matches("quote").count()), (200, 32), "{}", response.body);
}

#[test]
fn the_page_is_public_but_subscribing_needs_sign_in() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    let ada = create_token(tokens.to_str().unwrap(), &["--role", "listener", "--name", "ada"]);
    let hub =
        HubProcess::start(&["--memory", "--listen", "127.0.0.1:0", "--tokens", tokens.to_str().unwrap()]);
    let client = hub.client();
    assert_eq!(client.get("/").status, 200);
    assert_eq!(client.get("/page/main.js").status, 200);
    assert_eq!(client.post("/aaep/v1/subscriptions", "{}").status, 401);
    assert_eq!(client.post("/page/markdown", "{}").status, 401);
    let cookie = sign_in(&hub, &ada);
    let page = client.with_header(&format!("Cookie: {cookie}"));
    assert_eq!(page.get("/").status, 200);
    let page = page.with_header(&format!("Origin: http://{}", hub.address));
    page.subscribe(testing::messages::REPLY_CAPABILITIES);
}

#[test]
fn the_page_has_a_request_field_only_with_a_demo_agent() {
    for (arguments, expected) in [(&["--demo-agent"][..], "yes"), (&["--compat"], "yes"), (&[], "no")] {
        let hub = HubProcess::start_in_memory_with(arguments);
        let page = hub.client().get("/").body;
        assert!(page.contains(&format!("data-demo=\"{expected}\"")), "{arguments:?}");
        let status = hub.client().post("/demo", r#"{"text":"Hello"}"#).status;
        assert_eq!(status == 201, expected == "yes", "{arguments:?}: {status}");
    }
}

#[test]
fn an_embedded_hub_without_a_page_serves_none() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let hub = runtime
        .block_on(async { sayso::Hub::embedded().agent("bank").listen("127.0.0.1:0").open().unwrap() });
    let address = hub.address().unwrap().to_string();
    for path in ["/", "/page/main.js"] {
        let response = testing::http::TestClient::new(&address).get(path);
        assert_eq!(response.status, 404, "{path}: {response:?}");
    }
}
