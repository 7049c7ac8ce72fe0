//! The listening page, handed from `listen`, which has it, to `wire`, which gives it.

use wire::Asset;

/// Its files. `demo` says whether there is an assistant to ask.
pub(crate) fn assets(demo: bool) -> Vec<Asset> {
    let assets = ::listen::page::assets(demo).into_iter();
    assets.map(|asset| Asset::new(asset.path, asset.media_type, asset.body.into_owned())).collect()
}
