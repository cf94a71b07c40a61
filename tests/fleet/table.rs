//! The status of the instances as a table that is drawn over itself on a terminal.

use std::fmt::Write as _;
use std::io::IsTerminal as _;

use serde_json::Value;
use testbed::net;

use crate::Instance;

/// What an instance says of itself.
pub(crate) struct Look {
    name: String,
    /// Its status document; `None` if it doesn't answer.
    status: Option<Value>,
}

impl Look {
    pub(crate) fn at(instance: &Instance) -> Self {
        let ended = instance.program.status().is_some();
        let reply = (!ended)
            .then(|| net::try_request("GET", &format!("{}/guard", instance.url), &[], b"").ok())
            .flatten();
        let status = reply.and_then(|reply| serde_json::from_slice(&reply.body).ok());
        Self { name: instance.name.clone(), status }
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.status.as_ref().is_some_and(|status| status["ready"] == true)
    }

    fn line(&self) -> String {
        let Some(status) = &self.status else { return format!("{:<10} gone", self.name) };
        let text = |pointer: &str| match status.pointer(pointer) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            Some(value) => value.to_string(),
        };
        let members =
            status.pointer("/fleet/members").and_then(Value::as_array).map_or(0, Vec::len);
        let gate = match text("/gate/reason") {
            reason if reason.is_empty() => text("/gate/state"),
            reason => format!("{}: {reason}", text("/gate/state")),
        };
        format!(
            "{:<10} {:<6} {:<22} {:>3} {:>8} {:>9} {:>18} {:>7} {:>9} {:>8} {:>8}",
            self.name,
            if self.is_ready() { "yes" } else { "no" },
            gate,
            text("/gate/generation"),
            members,
            text("/fleet/lease_left_ms"),
            text("/fleet/applied"),
            text("/fleet/resyncs"),
            text("/fleet/writes_waited"),
            text("/counts/refused"),
            text("/counts/loader/loads"),
        )
    }
}

/// The table.
pub(crate) struct Table {
    on_terminal: bool,
    drawn: usize,
}

impl Table {
    pub(crate) fn new() -> Self {
        Self { on_terminal: std::io::stdout().is_terminal(), drawn: 0 }
    }

    /// What to print, over what was printed last.
    pub(crate) fn text(&mut self, looks: &[Look]) -> String {
        let mut text = String::new();
        if self.on_terminal && self.drawn > 0 {
            // Up by as many lines, and clear to the end.
            let _ = write!(text, "\x1b[{}A\x1b[J", self.drawn);
        }
        if self.on_terminal || self.drawn == 0 {
            text.push_str(
                "instance   ready  gate                   gen  members  lease ms            applied \
                 resyncs    waited  refused    loads\n",
            );
        }
        for look in looks {
            text.push_str(&look.line());
            text.push('\n');
        }
        self.drawn = looks.len() + 1;
        text
    }
}
