//! Routes by their templates: an address without the ids in it, so that numbers stay few and ids stay out of them.

/// What was asked could not be read.
pub(super) const UNREAD: &str = "unread";

pub(super) fn template(path: &str) -> &'static str {
    let parts: Vec<&str> = path.split('/').skip(1).take(7).collect();
    match parts.as_slice() {
        [""] => "/",
        ["healthz"] => "/healthz",
        ["metrics"] => "/metrics",
        ["login"] => "/login",
        ["events"] => "/events",
        ["messages"] => "/messages",
        ["sessions"] => "/sessions",
        [".well-known", "aaep-manifest.json"] => "/.well-known/aaep-manifest.json",
        ["aaep", "v1", "events"] => "/aaep/v1/events",
        ["aaep", "v1", "ws"] => "/aaep/v1/ws",
        ["aaep", "v1", "subscriptions"] => "/aaep/v1/subscriptions",
        ["aaep", "v1", "replies"] => "/aaep/v1/replies",
        ["agent", "v1", "ws"] => "/agent/v1/ws",
        ["agent", "v1", "sessions"] => "/agent/v1/sessions",
        ["agent", "v1", "sessions", _, "events"] => "/agent/v1/sessions/{id}/events",
        ["agent", "v1", "sessions", _, "output"] => "/agent/v1/sessions/{id}/output",
        ["agent", "v1", "sessions", _, "confirmations"] => "/agent/v1/sessions/{id}/confirmations",
        ["agent", "v1", "sessions", _, "clarifications"] => "/agent/v1/sessions/{id}/clarifications",
        ["agent", "v1", "sessions", _, "replies", _] => "/agent/v1/sessions/{id}/replies/{token}",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::template;

    #[test]
    fn no_id_is_left_in_a_template() {
        for path in [
            "/agent/v1/sessions/SECRET/events",
            "/agent/v1/sessions/SECRET/replies/SECRET",
            "/SECRET",
            "/a/b/c/d/e/f/g/SECRET",
        ] {
            assert!(!template(path).contains("SECRET"), "{path}");
        }
        assert_eq!(template("/agent/v1/sessions/x/output"), "/agent/v1/sessions/{id}/output");
        assert_eq!((template("/"), template("/healthz"), template("")), ("/", "/healthz", "other"));
    }
}
