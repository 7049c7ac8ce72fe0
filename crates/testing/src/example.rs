/// Runs an example of `sayso`'s documentation: what is in the braces, with the hub and the session that are named before it.
#[macro_export]
macro_rules! example {
    ($hub:ident, $session:ident, { $($body:tt)* }) => {
        $crate::example!($hub, {
            let $session = $hub.session("Pay Ben.").start().await?;
            $($body)*
        })
    };
    ($hub:ident, { $($body:tt)* }) => {
        $crate::example!({
            let $hub = sayso::Hub::embedded().open()?;
            $($body)*
        })
    };
    ({ $($body:tt)* }) => {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
            .block_on(async {
                $($body)*
                Ok::<(), Box<dyn std::error::Error>>(())
            })
            .unwrap()
    };
}

/// Runs an example like [`example!`], at a hub where somebody listens and says yes; see `person!`.
#[macro_export]
macro_rules! heard {
    ($hub:ident, $session:ident, { $($body:tt)* }) => {{
        $crate::person!();
        $crate::example!({
            let ($hub, $session) = heard().await;
            $($body)*
        })
    }};
}
