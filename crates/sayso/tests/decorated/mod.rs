//! Functions with `#[sayso::tool]` and services with the middleware, on a hub in the process and on one behind a socket.

#[cfg(feature = "tower")]
mod served;
mod tools;

use std::time::Duration;

use crate::support::stage::{Kind, Stage};

/// Long enough for any machine; what takes longer waits for what never comes.
const PATIENCE: Duration = Duration::from_mins(3);

async fn in_time<F: Future<Output = ()>>(behaviour: impl FnOnce(Stage) -> F, kind: Kind) {
    let shown = async { behaviour(Stage::new(kind).await).await };
    tokio::time::timeout(PATIENCE, shown).await.expect("it ends");
}

macro_rules! on_both {
    ($room:ident: $($behaviour:ident)*) => {
        mod $room {
            mod embedded {
                $(#[tokio::test]
                async fn $behaviour() {
                    crate::decorated::in_time(crate::decorated::$room::$behaviour, crate::support::stage::Kind::Embedded).await;
                })*
            }
            mod client {
                $(#[tokio::test]
                async fn $behaviour() {
                    crate::decorated::in_time(crate::decorated::$room::$behaviour, crate::support::stage::Kind::Client).await;
                })*
            }
        }
    };
}

mod on_both {
    on_both! { tools:
        a_tool_asks_announces_runs_and_reports
        a_refused_tool_never_runs
        a_tool_is_announced_before_it_runs
        a_tool_may_have_any_shape
        a_tool_without_a_session_does_nothing
        a_tool_of_no_great_risk_is_only_announced
        a_tools_error_is_told_without_secrets
        a_slow_tool_is_dropped_and_told
        a_tool_without_words_is_said_as_its_name_in_words
        a_tools_panic_is_told
        two_tools_are_asked_for_at_once_and_answered_each
        a_tool_calls_a_tool
        a_tool_whose_tool_is_refused_fails
        the_persons_stop_drops_a_tools_body
        a_tool_that_is_dropped_while_it_asks_never_runs
        a_tool_that_outlives_its_session_is_dropped_and_told_so
        all_arguments_are_heard_but_the_confidential
        a_session_that_is_carried_along_ends_with_its_owner
    }
    #[cfg(feature = "tower")]
    on_both! { served:
        a_request_is_a_session_and_its_tools_ask_through_it
        what_fails_is_told_as_failed
        a_function_is_words_enough
        the_persons_stop_drops_the_work
        a_dropped_request_is_left_in_the_middle
        a_timeout_around_it_leaves_it_in_the_middle
        a_panic_in_the_service_is_told
        requests_at_once_have_a_session_each_and_wait_for_room
        a_session_that_cannot_begin_lets_nothing_happen
    }
}
