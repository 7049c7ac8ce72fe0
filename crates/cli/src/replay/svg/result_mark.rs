//! The marks of results. Each has its own shape, so that results can be told apart without colour.

use std::fmt::Write;

use crate::replay::timeline::StepResult;

/// Width of a mark.
pub(super) const MARK_WIDTH: i32 = 14;

/// Draws a mark with its left edge at `x` and its centre at `y`. `on_bar` is for marks on a bar, which is light in dark mode too.
pub(super) fn draw_mark(result: StepResult, x: i32, y: i32, on_bar: bool, out: &mut String) {
    let class = if on_bar { "mark on" } else { "mark" };
    let at = |dx: i32, dy: i32| format!("{},{}", x + dx, y + dy);
    let _ = match result {
        StepResult::Succeeded => {
            // A check mark.
            write!(out, r#"<polyline class="{class}" points="{} {} {}"/>"#, at(2, 0), at(5, 4), at(11, -5))
        }
        StepResult::Failed => {
            // A cross.
            let _ = write!(out, r#"<polyline class="{class}" points="{} {}"/>"#, at(2, -4), at(10, 4));
            write!(out, r#"<polyline class="{class}" points="{} {}"/>"#, at(2, 4), at(10, -4))
        }
        StepResult::TimedOut => {
            // A clock.
            let _ = write!(out, r#"<circle class="{class}" cx="{}" cy="{y}" r="5"/>"#, x + 6);
            write!(out, r#"<polyline class="{class}" points="{} {} {}"/>"#, at(6, -3), at(6, 0), at(9, 0))
        }
        StepResult::Refused => {
            // A no-entry sign.
            let _ = write!(out, r#"<circle class="{class}" cx="{}" cy="{y}" r="5"/>"#, x + 6);
            write!(out, r#"<polyline class="{class}" points="{} {}"/>"#, at(3, 0), at(9, 0))
        }
        // A square.
        StepResult::Stopped => {
            write!(out, r#"<rect class="{class}" x="{}" y="{}" width="9" height="9"/>"#, x + 2, y - 4)
        }
    };
}

/// Returns the class of a bar with this result. The outlines differ too.
pub(super) fn bar_class(result: Option<StepResult>) -> &'static str {
    match result {
        Some(StepResult::Succeeded) => "bar ok",
        Some(StepResult::Failed) => "bar fail",
        Some(StepResult::TimedOut) => "bar late",
        Some(StepResult::Refused) => "bar no",
        Some(StepResult::Stopped) => "bar off",
        None => "bar",
    }
}
