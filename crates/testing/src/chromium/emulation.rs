//! Emulation of colours, motion, window size and network state.

use serde_json::{Value, json};

use super::Page;

/// The media preferences of the person's system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MediaPreferences {
    pub dark: bool,
    pub forced_colours: bool,
    pub more_contrast: bool,
    pub reduced_motion: bool,
}

impl MediaPreferences {
    pub const LIGHT: Self =
        Self { dark: false, forced_colours: false, more_contrast: false, reduced_motion: false };
    pub const DARK: Self = Self { dark: true, ..Self::LIGHT };

    fn features(self) -> Value {
        let feature = |name: &str, is_on: bool, yes: &str, no: &str| json!({ "name": name, "value": if is_on { yes } else { no } });
        json!([
            feature("prefers-color-scheme", self.dark, "dark", "light"),
            feature("forced-colors", self.forced_colours, "active", "none"),
            feature("prefers-contrast", self.more_contrast, "more", "no-preference"),
            feature("prefers-reduced-motion", self.reduced_motion, "reduce", "no-preference"),
        ])
    }
}

impl Page {
    pub fn set_media_preferences(&mut self, preferences: MediaPreferences) {
        self.call("Emulation.setEmulatedMedia", &json!({ "features": preferences.features() }));
    }

    /// Sets the window size in pixels and the zoom in percent. At 400 percent, the page has a quarter of the width and
    /// height.
    pub fn set_window(&mut self, width: u32, height: u32, zoom: u32) {
        self.size = (width, height, zoom);
        let metrics = json!({
            "width": width * 100 / zoom,
            "height": height * 100 / zoom,
            "deviceScaleFactor": f64::from(zoom) / 100.0,
            "mobile": false,
        });
        self.call("Emulation.setDeviceMetricsOverride", &metrics);
    }

    /// Disables or enables the network.
    pub fn set_offline(&mut self, offline: bool) {
        let conditions =
            json!({ "offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1 });
        self.call("Network.emulateNetworkConditions", &conditions);
    }
}
