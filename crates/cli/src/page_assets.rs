//! The files of the listening page, converted from `listen`'s type to `wire`'s.

use wire::Asset;

/// Returns the files of the page. `has_demo_agent` is true if the demo agent is running.
pub(crate) fn assets(has_demo_agent: bool) -> Vec<Asset> {
    let assets = ::listen::page::assets(has_demo_agent).into_iter();
    assets.map(|asset| Asset::new(asset.path, asset.media_type, asset.body.into_owned())).collect()
}
