//! The Prometheus and OpenMetrics text formats.

use std::fmt::Write;

use super::metrics::{MetricFamily, MetricSamples, Sample};

/// A text format for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpositionFormat {
    /// Prometheus text, version 0.0.4.
    Text,
    /// OpenMetrics 1.0.0.
    OpenMetrics,
}

impl ExpositionFormat {
    /// Selects the format that an `Accept` header asks for.
    pub fn from_accept(accept: Option<&str>) -> Self {
        let is_open_metrics =
            |range: &str| range.trim().to_ascii_lowercase().starts_with("application/openmetrics-text");
        if accept.is_some_and(|accept| accept.split(',').any(is_open_metrics)) {
            Self::OpenMetrics
        } else {
            Self::Text
        }
    }

    /// Returns the media type of the format.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    pub(super) fn write(self, families: &[MetricFamily]) -> String {
        let mut page = String::with_capacity(8 * 1024);
        for family in families {
            self.write_family(&mut page, family);
        }
        if self == Self::OpenMetrics {
            page.push_str("# EOF\n");
        }
        page
    }

    fn write_family(self, page: &mut String, MetricFamily { name, help, value }: &MetricFamily) {
        let (type_name, suffix) = match value {
            MetricSamples::Counter(_) => ("counter", "_total"),
            MetricSamples::Gauge(_) => ("gauge", ""),
            MetricSamples::Histogram(_) => ("histogram", ""),
        };
        // OpenMetrics names a counter's family without the suffix.
        let family_suffix = if self == Self::OpenMetrics { "" } else { suffix };
        let _ =
            writeln!(page, "# HELP {name}{family_suffix} {help}\n# TYPE {name}{family_suffix} {type_name}");
        match value {
            MetricSamples::Counter(samples) | MetricSamples::Gauge(samples) => {
                for Sample { labels, value } in samples {
                    let _ = writeln!(page, "{name}{suffix}{} {value}", format_labels(labels));
                }
            }
            MetricSamples::Histogram(histogram) => {
                let bounds = histogram.bounds.iter().map(|bound| format!("{bound:?}"));
                let mut cumulative = 0;
                for (bound, count) in bounds.chain(["+Inf".to_owned()]).zip(&histogram.buckets) {
                    cumulative += count;
                    let _ = writeln!(page, "{name}_bucket{{le=\"{bound}\"}} {cumulative}");
                }
                let _ = writeln!(page, "{name}_sum {}\n{name}_count {cumulative}", histogram.sum);
            }
        }
    }
}

fn format_labels(labels: &[(&str, String)]) -> String {
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
    use crate::telemetry::histogram::Histogram;

    fn families() -> Vec<MetricFamily> {
        let sample = Sample { labels: vec![("why", "a\"b\\c\nd".to_owned())], value: 3.0 };
        let seconds = Histogram::new(&[0.5, 1.0]);
        seconds.add(0.25);
        seconds.add(7.0);
        vec![
            MetricFamily { name: "a", help: "A.", value: MetricSamples::Counter(vec![sample]) },
            MetricFamily { name: "s", help: "S.", value: MetricSamples::Histogram(seconds.snapshot()) },
        ]
    }

    #[test]
    fn metrics_are_written_as_prometheus_text() {
        let expected = "# HELP a_total A.\n# TYPE a_total counter\na_total{why=\"a\\\"b\\\\c\\nd\"} 3\n# HELP s S.\n# TYPE s histogram\ns_bucket{le=\"0.5\"} 1\ns_bucket{le=\"1.0\"} 1\ns_bucket{le=\"+Inf\"} 2\ns_sum 7.25\ns_count 2\n";
        assert_eq!(ExpositionFormat::Text.write(&families()), expected);
    }

    #[test]
    fn the_accept_header_selects_open_metrics() {
        let format = ExpositionFormat::from_accept(Some(
            "application/openmetrics-text;version=1.0.0,text/plain;q=0.5",
        ));
        let page = format.write(&families());
        assert!(page.starts_with("# HELP a A.\n# TYPE a counter\na_total{"), "{page}");
        assert!(page.ends_with("# EOF\n"));
        assert_eq!(ExpositionFormat::from_accept(Some("*/*")), ExpositionFormat::Text);
    }
}
