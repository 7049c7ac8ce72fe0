//! The files of the listening page, converted from `listen`'s type to `wire`'s.

use wire::Asset;

/// Returns the files of the page. `demo` is true if the demo agent is running.
pub(crate) fn assets(demo: bool) -> Vec<Asset> {
    let assets = ::listen::page::assets(demo).into_iter();
    assets.map(|asset| Asset::new(asset.path, asset.media_type, asset.body.into_owned())).collect()
}
