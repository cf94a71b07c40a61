//! The progress bar on stderr.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use super::traffic::Traffic;
use super::units::per_second;

/// How often the bar is drawn.
const REDRAW: Duration = Duration::from_millis(200);

/// A bar for a run of `total` requests, or of a given time; hidden unless stderr is a terminal.
pub(super) fn bar(total: u64, duration: Option<Duration>) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    bar_on(ProgressDrawTarget::stderr(), total, duration)
}

fn bar_on(target: ProgressDrawTarget, total: u64, duration: Option<Duration>) -> ProgressBar {
    let (length, template) = match duration {
        Some(duration) => {
            (None, format!("{{elapsed}} of {duration:?}, {{human_pos}} requests, {{rate}}"))
        }
        None => (
            Some(total),
            "{elapsed} {wide_bar} {human_pos}/{human_len} requests, {rate}, {eta} left".to_owned(),
        ),
    };
    let bar = ProgressBar::with_draw_target(length, target);
    match ProgressStyle::with_template(&template) {
        Ok(style) => bar.with_style(style.with_key(
            "rate",
            |state: &ProgressState, out: &mut dyn std::fmt::Write| {
                // A bar that can't be drawn is no reason to end the run.
                let _drawn = out.write_str(&per_second(state.per_sec()));
            },
        )),
        Err(_) => bar,
    }
}

/// Redraws the bar, and never ends.
pub(super) async fn show(bar: &ProgressBar, traffic: &Traffic) {
    let mut ticks = tokio::time::interval(REDRAW);
    loop {
        ticks.tick().await;
        bar.set_position(traffic.handed_out());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use indicatif::TermLike;

    use super::*;

    #[derive(Clone, Debug, Default)]
    struct Screen(Arc<Mutex<String>>);

    impl TermLike for Screen {
        fn width(&self) -> u16 {
            120
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, line: &str) -> io::Result<()> {
            self.write_str(line)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_bar_shows_counts_and_a_rate_without_a_long_fraction() {
        for (duration, parts) in [
            (None, ["5,000/20,000 requests, ", " left"]),
            (Some(Duration::from_secs(30)), [" of 30s, ", "5,000 requests, "]),
        ] {
            let screen = Screen::default();
            let target = ProgressDrawTarget::term_like(Box::new(screen.clone()));
            let bar = bar_on(target, 20_000, duration);
            for position in 1..=5_000 {
                bar.set_position(position);
            }
            bar.force_draw();
            let shown = screen.0.lock().unwrap().clone();
            for part in parts {
                assert!(shown.contains(part), "{shown}");
            }
            let rates = shown.split_inclusive("/s").filter(|part| part.ends_with("/s"));
            let rates: Vec<&str> = rates.filter_map(|part| part.rsplit(' ').next()).collect();
            assert!(!rates.is_empty(), "{shown}");
            for rate in rates {
                let fraction = rate.split_once('.').map_or("", |(_, fraction)| fraction);
                assert!(fraction.len() <= "0/s".len(), "{rate}");
            }
        }
    }
}
