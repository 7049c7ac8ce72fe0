//! Functions with `#[sayso::tool]` and services with the middleware, on an embedded hub and on a remote one.

#[cfg(feature = "tower")]
mod middleware;
mod tools;

use std::time::Duration;

use crate::support::fixture::{HubFixture, HubKind};

/// Enough time even for slow machines. A test that takes longer is stuck.
const TEST_TIMEOUT: Duration = Duration::from_mins(3);

async fn run_with_timeout<F: Future<Output = ()>>(behaviour: impl FnOnce(HubFixture) -> F, kind: HubKind) {
    let running = async { behaviour(HubFixture::new(kind).await).await };
    tokio::time::timeout(TEST_TIMEOUT, running).await.expect("the test ends in time");
}

macro_rules! on_both_hub_kinds {
    ($module:ident: $($behaviour:ident)*) => {
        mod $module {
            mod embedded {
                $(#[tokio::test]
                async fn $behaviour() {
                    crate::tool_and_middleware::run_with_timeout(crate::tool_and_middleware::$module::$behaviour, crate::support::fixture::HubKind::Embedded).await;
                })*
            }
            mod remote {
                $(#[tokio::test]
                async fn $behaviour() {
                    crate::tool_and_middleware::run_with_timeout(crate::tool_and_middleware::$module::$behaviour, crate::support::fixture::HubKind::Remote).await;
                })*
            }
        }
    };
}

mod on_both_hub_kinds {
    on_both_hub_kinds! { tools:
        a_tool_asks_announces_runs_and_reports
        a_refused_tool_never_runs
        a_tool_is_announced_before_it_runs
        a_tool_may_have_any_signature
        a_tool_without_a_session_does_nothing
        a_tool_below_high_risk_is_only_announced
        a_tool_error_is_reported_without_secrets
        a_tool_that_times_out_is_dropped_and_reported
        a_tool_without_texts_is_announced_by_its_name
        a_tool_panic_is_reported
        concurrent_tools_get_their_own_answers
        a_tool_can_call_another_tool
        a_tool_fails_if_its_inner_tool_is_refused
        a_stop_request_drops_the_body_of_a_tool
        a_tool_dropped_while_its_question_is_open_never_runs
        a_tool_that_outlives_its_session_is_dropped_with_an_error
        all_arguments_except_confidential_ones_are_announced
        a_current_session_handle_becomes_invalid_when_its_owner_ends
    }
    #[cfg(feature = "tower")]
    on_both_hub_kinds! { middleware:
        a_request_runs_in_a_session_that_its_tools_use
        a_failed_request_is_reported_as_failed
        a_function_can_describe_requests
        a_stop_request_drops_the_request
        a_dropped_request_ends_its_session_with_an_error
        a_request_can_hand_off_and_learns_the_outcome
        an_outer_timeout_ends_the_session_with_an_error
        a_panic_in_the_service_is_reported
        concurrent_requests_have_their_own_sessions_and_respect_the_concurrency_limit
        a_session_that_cannot_start_runs_nothing
    }
}
