//! The listening page, as a browser gets it: what is given, with which headers, and that nothing else is.

use crate::serve::sign_in::sign_in;
use testing::cli::token;
use testing::http::Response;
use testing::hub::Hub;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

fn header<'a>(answer: &'a Response, name: &str) -> &'a str {
    let found = answer.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    found.unwrap_or_else(|| panic!("no {name} in {answer:?}"))
}

/// The files that a file of the page names.
fn named(body: &str) -> Vec<String> {
    let is_file = |text: &&str| matches!(text.rsplit('.').next(), Some("js" | "css"));
    let quoted = body.split('"').filter(is_file);
    quoted.map(|text| text.replace("./", "/page/")).collect()
}

#[test]
fn the_page_and_all_that_it_loads_come_with_a_strict_policy() {
    let hub = Hub::open();
    let client = hub.client();
    let mut waiting = vec!["/".to_owned()];
    let mut seen = Vec::new();
    while let Some(path) = waiting.pop() {
        if seen.contains(&path) {
            continue;
        }
        let answer = client.get(&path);
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(header(&answer, "Content-Security-Policy"), POLICY);
        assert_eq!(header(&answer, "X-Content-Type-Options"), "nosniff");
        assert_eq!(header(&answer, "Referrer-Policy"), "no-referrer");
        assert_eq!(header(&answer, "Cache-Control"), "no-cache");
        assert!(!answer.head.contains("Set-Cookie") && !answer.head.contains("no-store"), "{}", answer.head);
        let media_type = match path.rsplit('.').next() {
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            _ => "text/html; charset=utf-8",
        };
        assert_eq!(header(&answer, "Content-Type"), media_type, "{path}");
        // What the policy would not let run is not there either.
        for inline in ["<script>", "<style", " style=", " onclick="] {
            assert!(!answer.body.contains(inline), "{path}: {inline}");
        }
        waiting.extend(named(&answer.body));
        seen.push(path);
    }
    for file in ["/page/page.css", "/page/main.js", "/page/ear.js"] {
        assert!(seen.iter().any(|path| path == file), "{file}: {seen:?}");
    }
}

#[test]
fn a_file_that_has_not_changed_is_not_sent_again() {
    let hub = Hub::open();
    for path in ["/", "/page/main.js"] {
        let first = hub.client().get(path);
        let tag = header(&first, "ETag").to_owned();
        for tags in [tag.clone(), format!("\"other\", W/{tag}"), "*".to_owned()] {
            let again = hub.client().with(&format!("If-None-Match: {tags}")).get(path);
            assert_eq!((again.status, again.body.as_str()), (304, ""), "{tags}: {again:?}");
            assert!(!again.head.contains("Content-Length"), "{}", again.head);
            assert_eq!(header(&again, "ETag"), tag);
        }
        let changed = hub.client().with("If-None-Match: \"other\"").get(path);
        assert_eq!((changed.status, changed.body), (200, first.body));
    }
}

#[test]
fn head_tells_what_get_would_send() {
    let hub = Hub::open();
    for path in ["/", "/page/page.css"] {
        let whole = hub.client().get(path);
        let request = format!("HEAD {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", hub.address);
        let head = hub.client().raw(request.as_bytes());
        assert_eq!(head, format!("{}\r\n\r\n", whole.head), "{path}");
        assert!(whole.head.contains(&format!("Content-Length: {}", whole.body.len())));
    }
}

#[test]
fn nothing_else_is_given_and_nothing_is_taken() {
    let hub = Hub::open();
    let client = hub.client();
    for path in [
        "/index.html",
        "/page",
        "/page/",
        "/page/index.html",
        "/page/package.json",
        "/page/tests/ear.test.js",
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
    assert_eq!(client.with("Host: elsewhere.example").get("/").status, 421);
}

#[test]
fn everybody_gets_the_page_but_only_who_signs_in_hears() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    let ada = token(tokens.to_str().unwrap(), &["--role", "listener", "--name", "ada"]);
    let hub = Hub::start(&["--memory", "--listen", "127.0.0.1:0", "--tokens", tokens.to_str().unwrap()]);
    let client = hub.client();
    assert_eq!(client.get("/").status, 200);
    assert_eq!(client.get("/page/main.js").status, 200);
    assert_eq!(client.post("/aaep/v1/subscriptions", "{}").status, 401);
    let cookie = sign_in(&hub, &ada);
    let page = client.with(&format!("Cookie: {cookie}"));
    assert_eq!(page.get("/").status, 200);
    let page = page.with(&format!("Origin: http://{}", hub.address));
    page.subscribe(testing::messages::CAN_REPLY);
}

#[test]
fn the_page_has_a_field_to_ask_only_where_somebody_can_be_asked() {
    for (arguments, told) in [(&["--demo-agent"][..], "yes"), (&["--compat"], "yes"), (&[], "no")] {
        let hub = Hub::limited(arguments);
        let page = hub.client().get("/").body;
        assert!(page.contains(&format!("data-demo=\"{told}\"")), "{arguments:?}");
        let asked = hub.client().post("/demo", r#"{"text":"Hello"}"#).status;
        assert_eq!(asked == 201, told == "yes", "{arguments:?}: {asked}");
    }
}

#[test]
fn a_hub_that_was_handed_no_page_has_none() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let hub = runtime
        .block_on(async { sayso::Hub::embedded().agent("bank").listen("127.0.0.1:0").open().unwrap() });
    let address = hub.address().unwrap().to_string();
    for path in ["/", "/page/main.js"] {
        let answer = testing::http::Client::of(&address).get(path);
        assert_eq!(answer.status, 404, "{path}: {answer:?}");
    }
}
