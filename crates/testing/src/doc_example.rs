/// Runs the block of a documentation example of `sayso`. The hub and the session with the given names are created first.
#[macro_export]
macro_rules! run_example {
    ($hub:ident, $session:ident, { $($body:tt)* }) => {
        $crate::run_example!($hub, {
            let $session = $hub.session("Pay Ben.").start().await?;
            $($body)*
        })
    };
    ($hub:ident, { $($body:tt)* }) => {
        $crate::run_example!({
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

/// Runs an example like [`run_example!`], with a hub whose listener accepts every question; see
/// `declare_test_listener!`.
#[macro_export]
macro_rules! example_with_listener {
    ($hub:ident, $session:ident, { $($body:tt)* }) => {{
        $crate::declare_test_listener!();
        $crate::run_example!({
            let ($hub, $session) = hub_with_listener().await;
            $($body)*
        })
    }};
}
