//! Checks whether a hub answers, and whether somebody listens to it.

use std::time::Duration;

use client::{ClientError, HttpClient, HubLocation, HubSource, PersistentConnection};

use super::Finding;

/// How long a hub may take to answer.
const MAX_DURATION: Duration = Duration::from_secs(10);
/// Maximum length of the hub's metrics, in bytes.
const MAX_METRICS_BYTES: usize = 4 * 1024 * 1024;

/// What to do if no hub runs.
const START_HUB: &str =
    "Run `sayso listen` in a terminal, or `sayso service install` to have a hub all the time.";

pub(super) async fn check(address: Option<&str>, token: Option<&str>) -> Vec<Finding> {
    let location = match HubLocation::find(address) {
        Ok(location) => location,
        Err(error) => return vec![Finding::problem(format!("Hub: {error}."))],
    };
    let hub = match location.source {
        HubSource::PersonalHub => format!("your personal hub at {}", location.url),
        HubSource::Environment => format!("the hub at {}, from SAYSO_URL,", location.url),
        HubSource::Argument => format!("the hub at {}", location.url),
    };
    let client = HttpClient::new(location.url);
    let client = match token {
        Some(token) => client.with_token(token),
        None => Ok(client),
    };
    let answer = match client {
        Ok(client) => tokio::time::timeout(MAX_DURATION, read_metrics(&client)).await,
        Err(error) => Ok(Err(error)),
    };
    match answer {
        Err(_) => vec![Finding::problem(format!(
            "Hub: {hub} does not answer within {} seconds. Restart it.",
            MAX_DURATION.as_secs()
        ))],
        Ok(Err(error)) => {
            let advice = if location.source == HubSource::PersonalHub {
                START_HUB
            } else {
                "Check the address, and whether the hub runs."
            };
            vec![Finding::problem(format!("Hub: {hub} cannot be reached: {error}. {advice}"))]
        }
        Ok(Ok(HubAnswer::NotAHub)) => {
            vec![Finding::problem(format!("Hub: what answers at {hub} is not a hub. Check the address."))]
        }
        Ok(Ok(HubAnswer::Running { listeners })) => {
            vec![Finding::ok(format!("Hub: {hub} answers.")), listener_finding(listeners)]
        }
    }
}

enum HubAnswer {
    NotAHub,
    /// The number of listeners, if the hub reports it.
    Running {
        listeners: Option<u64>,
    },
}

async fn read_metrics(client: &HttpClient) -> Result<HubAnswer, ClientError> {
    let mut connection = PersistentConnection::open(client.connect().await?).await?;
    let mut get = async |path: &str| {
        let request = client.persistent_request(http::Method::GET, path).body(String::new());
        let request = request.map_err(|_| ClientError::InvalidToken)?;
        connection.send(request, MAX_METRICS_BYTES).await
    };
    let health = get("/healthz").await?;
    if health.status != 200 || health.body.trim() != "good" {
        return Ok(HubAnswer::NotAHub);
    }
    let metrics = get("/metrics").await?;
    let listeners = (metrics.status == 200).then(|| count_listeners(&metrics.body));
    Ok(HubAnswer::Running { listeners })
}

/// Adds the gauges of all transports.
fn count_listeners(metrics: &str) -> u64 {
    let gauges = metrics.lines().filter(|line| line.starts_with("sayso_listeners{"));
    gauges.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

fn listener_finding(listeners: Option<u64>) -> Finding {
    match listeners {
        None => Finding::note(
            "Listener: only an admin token may read whether somebody is listening. Set SAYSO_TOKEN to an admin token.",
        ),
        Some(0) => Finding::problem(
            "Listener: nobody is listening, so nobody can answer a question here. Run `sayso listen` in a terminal.",
        ),
        Some(1) => Finding::ok("Listener: 1 is connected."),
        Some(count) => Finding::ok(format!("Listener: {count} are connected.")),
    }
}

#[cfg(test)]
mod tests {
    use super::count_listeners;

    #[test]
    fn listeners_of_all_transports_count() {
        let metrics = "# TYPE sayso_listeners gauge\nsayso_listeners{transport=\"sse\"} 2\nsayso_listeners{transport=\"unix\"} 1\nsayso_listeners_x 9\n";
        assert_eq!((count_listeners(metrics), count_listeners("")), (3, 0));
    }
}
