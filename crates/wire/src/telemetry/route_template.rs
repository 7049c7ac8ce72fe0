//! Route templates: paths with placeholders for ids, so that there are few label values and none contains an id.

/// The route of a request that could not be read.
pub(super) const UNREADABLE: &str = "unreadable";
/// The route of a request to a path that does not exist.
pub(crate) const OTHER: &str = "other";

/// Returns the path, if it is a route for operators, which every server has.
pub(crate) fn operator_route(path: &str) -> Option<&'static str> {
    ["/healthz", "/readyz", "/metrics"].into_iter().find(|route| *route == path)
}

/// Returns the route of a request to the hub.
pub(crate) fn template(path: &str) -> &'static str {
    let parts: Vec<&str> = path.split('/').skip(1).take(7).collect();
    match parts.as_slice() {
        [""] => "/",
        ["healthz"] => "/healthz",
        ["readyz"] => "/readyz",
        ["metrics"] => "/metrics",
        ["login"] => "/login",
        ["events"] => "/events",
        ["messages"] => "/messages",
        ["sessions"] => "/sessions",
        [".well-known", "aaep-manifest.json"] => "/.well-known/aaep-manifest.json",
        [".well-known", "sayso-receipt-key.json"] => "/.well-known/sayso-receipt-key.json",
        ["uri-res", "N2R"] => "/uri-res/N2R",
        [".well-known", "aaep-manifests", _] => "/.well-known/aaep-manifests/{agent}",
        ["aaep", "v1", "events"] => "/aaep/v1/events",
        ["aaep", "v1", "ws"] => "/aaep/v1/ws",
        ["aaep", "v1", "subscriptions"] => "/aaep/v1/subscriptions",
        ["aaep", "v1", "replies"] => "/aaep/v1/replies",
        ["agent", "v1", "ws"] => "/agent/v1/ws",
        ["agent", "v1", "manifest"] => "/agent/v1/manifest",
        ["agent", "v1", "sessions"] => "/agent/v1/sessions",
        ["agent", "v1", "sessions", _, "events"] => "/agent/v1/sessions/{id}/events",
        ["agent", "v1", "sessions", _, "output"] => "/agent/v1/sessions/{id}/output",
        ["agent", "v1", "sessions", _, "confirmations"] => "/agent/v1/sessions/{id}/confirmations",
        ["agent", "v1", "sessions", _, "clarifications"] => "/agent/v1/sessions/{id}/clarifications",
        ["agent", "v1", "sessions", _, "handoffs"] => "/agent/v1/sessions/{id}/handoffs",
        ["agent", "v1", "sessions", _, "invitations"] => "/agent/v1/sessions/{id}/invitations",
        ["agent", "v1", "sessions", _, "join"] => "/agent/v1/sessions/{id}/join",
        ["agent", "v1", "sessions", _, "replies", _] => "/agent/v1/sessions/{id}/replies/{token}",
        _ => OTHER,
    }
}

#[cfg(test)]
mod tests {
    use super::template;

    #[test]
    fn a_template_contains_no_ids() {
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
