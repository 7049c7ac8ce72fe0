//! The listening page: its files, converted from `listen`'s type to `wire`'s, and the route at which it has Markdown parsed.

use hub::Principal;
use listen::page;
use wire::http::{HttpResponse, StatusCode};
use wire::{Asset, Server};

/// Serves the page. `has_demo_agent` is true if the demo agent is running.
pub(crate) fn register(server: Server, has_demo_agent: bool) -> Server {
    let assets = page::assets(has_demo_agent).into_iter();
    let assets = assets.map(|asset| Asset::new(asset.path, asset.media_type, asset.body.into_owned()));
    let handler = |_: Principal, body: String| Box::pin(parse_markdown(body)) as _;
    server.with_assets(assets.collect()).with_handler(page::MARKDOWN_PATH, Box::new(handler))
}

/// Handles `POST /page/markdown`. Any caller gets a response, because it depends only on the request.
async fn parse_markdown(body: String) -> HttpResponse {
    // Long texts take milliseconds, in which the thread could not serve other connections.
    match tokio::task::spawn_blocking(move || page::parse_markdown(&body)).await {
        Ok(Some(response)) => HttpResponse::new(StatusCode::Ok).json(response),
        _ => HttpResponse::problem(
            StatusCode::BadRequest,
            "The body must be a JSON object with parts, complete and language.",
        ),
    }
}
