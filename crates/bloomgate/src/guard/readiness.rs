//! The answer to a readiness probe.

use std::sync::atomic::Ordering;

use super::Guard;
use crate::answer::OpenReason;
use crate::key::Key;

impl<K: Key, V: Send + Sync + 'static> Guard<K, V> {
    /// True once the service can answer correctly, with a gate that refuses or an open one: what
    /// `/readyz` asks. At the start it waits for the first warm-up, at most for
    /// [`ready_within`](super::GuardBuilder::ready_within), and for nothing else: an instance must
    /// not wait for its predecessor to leave. It never turns back: a gate that opens later must
    /// not take a fleet out of its load balancer. Whether the gate refuses is a field of
    /// [`status`](Self::status).
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let inner = &*self.0;
        if inner.ready.load(Ordering::Relaxed) {
            return true;
        }
        let waited = inner.clock.now().since(inner.started) >= inner.settings.ready_within;
        let ready = waited || !self.is_warming();
        if ready {
            inner.ready.store(true, Ordering::Relaxed);
        }
        ready
    }

    /// True while the first warm-up is to come or under way.
    fn is_warming(&self) -> bool {
        match self.0.gate.open_reason() {
            Some(OpenReason::Warming) => true,
            // Nothing is warmed; caches work once earlier writes have ended (rule A8).
            Some(OpenReason::Forced) => !self.0.local.is_quiesced(),
            _ => false,
        }
    }

    /// Why [`is_ready`](Self::is_ready) is false, for a person; empty when it is true.
    #[must_use]
    pub fn unready_reason(&self) -> String {
        if self.is_ready() {
            return String::new();
        }
        let inner = &*self.0;
        let mut reason = if inner.local.is_quiesced() {
            OpenReason::Warming.to_string()
        } else {
            "writes from before the start may still be under way".to_owned()
        };
        let progress = &inner.progress;
        if progress.keys() > 0 {
            reason.push_str(&format!("; {} keys read so far", progress.keys()));
        }
        let shared = inner.shared.as_ref().and_then(|shared| shared.last_error());
        for problem in [progress.last_error(), shared].into_iter().flatten() {
            reason.push_str("; ");
            reason.push_str(&problem);
        }
        reason
    }
}
