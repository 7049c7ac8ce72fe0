//! How a page is looked at: colours, motion, size, and whether there is a network.

use serde_json::{Value, json};

use super::Page;

/// What the person's system asks pages for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    pub dark: bool,
    pub forced_colours: bool,
    pub reduced_motion: bool,
}

impl Look {
    pub const LIGHT: Self = Self { dark: false, forced_colours: false, reduced_motion: false };
    pub const DARK: Self = Self { dark: true, ..Self::LIGHT };

    fn features(self) -> Value {
        let feature = |name: &str, on: bool, yes: &str, no: &str| json!({ "name": name, "value": if on { yes } else { no } });
        json!([
            feature("prefers-color-scheme", self.dark, "dark", "light"),
            feature("forced-colors", self.forced_colours, "active", "none"),
            feature("prefers-reduced-motion", self.reduced_motion, "reduce", "no-preference"),
        ])
    }
}

impl Page {
    pub fn look(&mut self, look: Look) {
        self.call("Emulation.setEmulatedMedia", &json!({ "features": look.features() }));
    }

    /// A window of that many pixels, seen at that zoom in percent: at 400, a quarter of them is left for the page.
    pub fn window(&mut self, width: u32, height: u32, zoom: u32) {
        self.size = (width, height, zoom);
        let metrics = json!({
            "width": width * 100 / zoom,
            "height": height * 100 / zoom,
            "deviceScaleFactor": f64::from(zoom) / 100.0,
            "mobile": false,
        });
        self.call("Emulation.setDeviceMetricsOverride", &metrics);
    }

    /// Cuts the network off, or gives it back.
    pub fn offline(&mut self, offline: bool) {
        let conditions =
            json!({ "offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1 });
        self.call("Network.emulateNetworkConditions", &conditions);
    }
}
