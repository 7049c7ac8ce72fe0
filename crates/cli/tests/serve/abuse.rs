//! What strangers send.

use testing::hub::Hub;

#[test]
fn a_page_of_another_origin_and_a_host_of_another_name_are_kept_out() {
    let hub = Hub::open();
    let client = hub.client();
    let own = client.with(&format!("Origin: http://{}", hub.address));
    assert_eq!(own.post("/aaep/v1/subscriptions", "{}").status, 400, "let in, and then not understood");
    for origin in ["https://evil.example", "null", "http://127.0.0.1", "file://"] {
        let page = client.with(&format!("Origin: {origin}"));
        assert_eq!(page.post("/aaep/v1/subscriptions", "{}").status, 403, "{origin}");
        assert_eq!(page.get("/aaep/v1/events?subscription_id=sub_1").status, 403, "{origin}");
    }
    assert_eq!(client.with("Host: rebound.example").get("/healthz").status, 421);
}

#[test]
fn bad_requests_get_a_clear_answer_and_the_hub_goes_on() {
    let hub = Hub::open();
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
        let answer = client.raw(request.as_bytes());
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request:.60}: {answer:.200}");
    }
    assert_eq!(client.get("/healthz").status, 200);
}

#[test]
fn addresses_are_read_to_the_letter() {
    let hub = Hub::open();
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
        "no token in an address"
    );
    assert_eq!(client.send("DELETE", "/aaep/v1/replies", "").status, 405);
    assert_eq!(client.post("/aaep/v1/replies", "{").status, 400);
    assert_eq!(client.post("/aaep/v1/replies", "{}").status, 204, "parseable is all that is told");
}

#[test]
fn an_idempotency_key_does_a_thing_once() {
    let hub = Hub::open();
    let client = hub.client();
    let session = client.start();
    let path = format!("/agent/v1/sessions/{session}/output");
    let keyed = client.with("Idempotency-Key: k1");
    let first = keyed.post(&path, "Hello.");
    assert_eq!(first.status, 200);
    assert_eq!(keyed.post(&path, "Hello.").body, first.body);
    assert_eq!(keyed.post(&path, "Other.").status, 409);
}
