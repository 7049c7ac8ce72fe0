//! Malformed and hostile HTTP requests.

use testing::hub::HubProcess;

#[test]
fn foreign_origins_and_hosts_are_refused() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let own_origin = client.with_header(&format!("Origin: http://{}", hub.address));
    assert_eq!(
        own_origin.post("/aaep/v1/subscriptions", "{}").status,
        400,
        "the origin is accepted, but the request is malformed"
    );
    for origin in ["https://evil.example", "null", "http://127.0.0.1", "file://"] {
        let page = client.with_header(&format!("Origin: {origin}"));
        assert_eq!(page.post("/aaep/v1/subscriptions", "{}").status, 403, "{origin}");
        assert_eq!(page.get("/aaep/v1/events?subscription_id=sub_1").status, 403, "{origin}");
    }
    assert_eq!(client.with_header("Host: rebound.example").get("/healthz").status, 421);
    // The hub does not listen on ::1, so the page there can belong to another user. `localhost` can be either.
    let port = hub.address.rsplit(':').next().unwrap();
    for origin in [format!("http://[::1]:{port}"), format!("http://localhost:{port}")] {
        let page = client.with_header(&format!("Origin: {origin}"));
        assert_eq!(page.post("/aaep/v1/subscriptions", "{}").status, 403, "{origin}");
    }
    assert_eq!(client.with_header(&format!("Host: [::1]:{port}")).get("/healthz").status, 421);
    let by_name = client.with_header(&format!("Host: localhost:{port}"));
    let page = by_name.with_header(&format!("Origin: http://localhost:{port}"));
    assert_eq!(page.post("/aaep/v1/subscriptions", "{}").status, 400);
}

#[test]
fn malformed_requests_get_a_clear_status_and_the_hub_continues() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let host = format!("Host: {}\r\n", hub.address);
    for (request, status) in [
        ("GARBAGE\r\n\r\n".to_owned(), "400"),
        (format!("GET /healthz HTTP/1.1\r\n{host}{host}\r\n"), "400"),
        (
            format!(
                "POST /aaep/v1/replies HTTP/1.1\r\n{host}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
            ),
            "400",
        ),
        (format!("POST /aaep/v1/replies HTTP/1.1\r\n{host}Content-Length: 99999999\r\n\r\n"), "413"),
        (format!("GET / HTTP/1.1\r\n{host}{}\r\n", "X: y\r\n".repeat(100)), "400"),
        (format!("GET / HTTP/1.1\r\n{host}X: {}", "y".repeat(20_000)), "431"),
        (format!("POST /aaep/v1/replies HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\nzz\r\n"), "400"),
    ] {
        let response = client.send_raw(request.as_bytes());
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{request:.60}: {response:.200}");
    }
    assert_eq!(client.get("/healthz").status, 200);
}

#[test]
fn paths_and_queries_are_matched_exactly() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    for path in [
        "/aaep",
        "/aaep/v1/events/",
        "//aaep/v1/events",
        "/aaep/v1/../v1/events",
        "/agent/v1/sessions/x",
        "/%61aep/v1/events",
    ] {
        assert!(matches!(client.get(path).status, 404 | 405), "{path}");
    }
    for query in [
        "",
        "?subscription_id=sub_1&subscription_id=sub_2",
        "?subscription_id=sub_1&x=1",
        "?subscription_id=%zz",
    ] {
        assert_eq!(client.get(&format!("/aaep/v1/events{query}")).status, 400, "{query}");
    }
    assert_eq!(client.get("/aaep/v1/events?subscription_id=sub_1").status, 404);
    assert_eq!(
        client.get("/aaep/v1/events?subscription_id=sub_1&token=sayso_x").status,
        400,
        "a token in a URL is refused"
    );
    assert_eq!(client.send("DELETE", "/aaep/v1/replies", "").status, 405);
    assert_eq!(client.post("/aaep/v1/replies", "{").status, 400);
    assert_eq!(client.post("/aaep/v1/replies", "{}").status, 204, "any JSON object gets 204");
}

#[test]
fn a_request_with_an_idempotency_key_is_executed_once() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let session = client.start_session();
    let path = format!("/agent/v1/sessions/{session}/output");
    let keyed = client.with_header("Idempotency-Key: k1");
    let first = keyed.post(&path, "Hello.");
    assert_eq!(first.status, 200);
    assert_eq!(keyed.post(&path, "Hello.").body, first.body);
    assert_eq!(keyed.post(&path, "Other.").status, 409);
}
