//! Numbers as Prometheus reads them.

use std::fmt::Write;

use super::metrics::{Family, Sample, Value};

/// The two forms of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposition {
    /// Prometheus text, version 0.0.4.
    Text,
    /// OpenMetrics 1.0.0.
    OpenMetrics,
}

impl Exposition {
    /// The form that an Accept header asks for.
    pub fn accepted(accept: Option<&str>) -> Self {
        let named =
            |range: &str| range.trim().to_ascii_lowercase().starts_with("application/openmetrics-text");
        if accept.is_some_and(|accept| accept.split(',').any(named)) { Self::OpenMetrics } else { Self::Text }
    }

    /// Its media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    pub(super) fn write(self, families: &[Family]) -> String {
        let mut page = String::with_capacity(8 * 1024);
        for family in families {
            self.family(&mut page, family);
        }
        if self == Self::OpenMetrics {
            page.push_str("# EOF\n");
        }
        page
    }

    fn family(self, page: &mut String, Family { name, help, value }: &Family) {
        let (kind, suffix) = match value {
            Value::Counter(_) => ("counter", "_total"),
            Value::Gauge(_) => ("gauge", ""),
            Value::Histogram(_) => ("histogram", ""),
        };
        // OpenMetrics names a counter's family without its suffix.
        let title = if self == Self::OpenMetrics { "" } else { suffix };
        let _ = writeln!(page, "# HELP {name}{title} {help}\n# TYPE {name}{title} {kind}");
        match value {
            Value::Counter(samples) | Value::Gauge(samples) => {
                for Sample { labels, value } in samples {
                    let _ = writeln!(page, "{name}{suffix}{} {value}", written(labels));
                }
            }
            Value::Histogram(seen) => {
                let bounds = seen.bounds.iter().map(|bound| format!("{bound:?}"));
                let mut below = 0;
                for (bound, count) in bounds.chain(["+Inf".to_owned()]).zip(&seen.buckets) {
                    below += count;
                    let _ = writeln!(page, "{name}_bucket{{le=\"{bound}\"}} {below}");
                }
                let _ = writeln!(page, "{name}_sum {}\n{name}_count {below}", seen.sum);
            }
        }
    }
}

fn written(labels: &[(&str, String)]) -> String {
    if labels.is_empty() {
        return String::new();
    }
    let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let pairs: Vec<_> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    format!("{{{}}}", pairs.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::histogram::Histogram;

    fn families() -> Vec<Family> {
        let sample = Sample { labels: vec![("why", "a\"b\\c\nd".to_owned())], value: 3.0 };
        let seconds = Histogram::new(&[0.5, 1.0]);
        seconds.add(0.25);
        seconds.add(7.0);
        vec![
            Family { name: "a", help: "A.", value: Value::Counter(vec![sample]) },
            Family { name: "s", help: "S.", value: Value::Histogram(seconds.snapshot()) },
        ]
    }

    #[test]
    fn prometheus_text() {
        let expected = "# HELP a_total A.\n# TYPE a_total counter\na_total{why=\"a\\\"b\\\\c\\nd\"} 3\n# HELP s S.\n# TYPE s histogram\ns_bucket{le=\"0.5\"} 1\ns_bucket{le=\"1.0\"} 1\ns_bucket{le=\"+Inf\"} 2\ns_sum 7.25\ns_count 2\n";
        assert_eq!(Exposition::Text.write(&families()), expected);
    }

    #[test]
    fn open_metrics_where_it_is_asked_for() {
        let asked = Exposition::accepted(Some("application/openmetrics-text;version=1.0.0,text/plain;q=0.5"));
        let page = asked.write(&families());
        assert!(page.starts_with("# HELP a A.\n# TYPE a counter\na_total{"), "{page}");
        assert!(page.ends_with("# EOF\n"));
        assert_eq!(Exposition::accepted(Some("*/*")), Exposition::Text);
    }
}
