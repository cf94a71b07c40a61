//! The certificate under which a gate may refuse, and the reasons for which it has none.

use crate::answer::OpenReason;

/// Everything that decides whether the gate may say *absent*.
#[derive(Debug)]
pub(super) struct CertificateState {
    forced_open: bool,
    shutting_down: bool,
    /// Why the link to the other instances is out of sync; `None` while it is in sync.
    link_doubt: Option<OpenReason>,
    /// Counts the moments at which admissions may have been missed. A generation is only as good
    /// as the void-free time it was built in.
    voids: u64,
    /// True while the serving generation is complete and nothing was void since its start.
    certified: bool,
    /// True once any generation has been complete.
    was_complete: bool,
}

impl CertificateState {
    pub(super) fn new(forced_open: bool) -> Self {
        Self {
            forced_open,
            shutting_down: false,
            link_doubt: Some(OpenReason::Joining),
            voids: 0,
            certified: false,
            was_complete: false,
        }
    }

    /// Losing the link is a doubt that passes: the certificate stays.
    pub(super) fn set_link_doubt(&mut self, doubt: Option<OpenReason>) {
        self.link_doubt = doubt;
    }

    /// Admissions may have been missed: only a generation that is begun from here on can win the
    /// certificate again.
    pub(super) fn void(&mut self) {
        self.voids += 1;
        self.certified = false;
    }

    pub(super) fn shut_down(&mut self) {
        self.shutting_down = true;
    }

    /// Certifies a generation that was begun when [`voids`](Self::voids) was `begun_at`.
    pub(super) fn certify(&mut self, begun_at: u64) -> Result<(), OpenReason> {
        if self.voids != begun_at {
            return Err(OpenReason::Rebuilding);
        }
        self.certified = true;
        self.was_complete = true;
        Ok(())
    }

    pub(super) fn is_in_sync(&self) -> bool {
        self.link_doubt.is_none()
    }

    pub(super) fn voids(&self) -> u64 {
        self.voids
    }

    pub(super) fn is_certified(&self) -> bool {
        self.certified
    }

    pub(super) fn was_complete(&self) -> bool {
        self.was_complete
    }

    /// Every reason that holds now, the one that says most first.
    fn reasons(&self) -> impl Iterator<Item = OpenReason> {
        let uncertified = match (self.certified, self.was_complete) {
            (true, _) => None,
            (false, true) => Some(OpenReason::Rebuilding),
            (false, false) => Some(OpenReason::Warming),
        };
        // A warm-up that is still to come says more than a link that is still to come up.
        let joining = self.link_doubt == Some(OpenReason::Joining) && !self.was_complete;
        let (link, warm_up) =
            if joining { (uncertified, self.link_doubt) } else { (self.link_doubt, uncertified) };
        [
            self.shutting_down.then_some(OpenReason::ShuttingDown),
            self.forced_open.then_some(OpenReason::Forced),
            link,
            warm_up,
        ]
        .into_iter()
        .flatten()
    }

    /// Why the gate is open; `None` while the certificate is valid.
    pub(super) fn open_reason(&self) -> Option<OpenReason> {
        self.reasons().next()
    }

    /// True if nothing is in doubt about what other instances write.
    pub(super) fn spares_caches(&self) -> bool {
        self.reasons().all(OpenReason::spares_caches)
    }
}
