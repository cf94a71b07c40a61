//! The choice of the link to other instances, from what the guard's user said.

use std::sync::Arc;

use super::settings::Settings;
use crate::backplane::{Alone, DeclaredSingle, Fleet, FleetSettings};
use crate::clock::Clock;
use crate::error::{ConfigError, StoreErrorKind};
use crate::ports::{Backplane, FleetLog, Store};
use crate::telemetry::Instances;

/// What was said of other instances.
#[derive(Debug, Default)]
pub(super) struct LinkChoice {
    pub(super) backplane: Option<Arc<dyn Backplane>>,
    pub(super) fleet: Option<FleetSettings>,
    pub(super) single_instance: bool,
}

/// A choice whose settings are fine.
#[derive(Debug)]
pub(super) enum CheckedLink {
    Given(Arc<dyn Backplane>),
    NoStore,
    /// With the log in which others would show.
    DeclaredSingle(Option<Arc<dyn FleetLog>>),
    Fleet(FleetSettings, Arc<dyn FleetLog>),
}

impl LinkChoice {
    /// Checks what was said, without asking any server.
    ///
    /// # Errors
    /// When two things were said that exclude each other, or what was said can't be.
    pub(super) fn checked(
        self,
        store: Option<&Arc<dyn Store>>,
        name: &str,
        settings: &Settings,
    ) -> Result<CheckedLink, ConfigError> {
        let log = store.and_then(|store| store.fleet_log(name));
        match self {
            Self { backplane: Some(_), fleet: Some(_), .. } => Err(contradiction("fleet")),
            Self { backplane: Some(_), single_instance: true, .. }
            | Self { fleet: Some(_), single_instance: true, .. } => {
                Err(contradiction("single_instance"))
            }
            Self { backplane: Some(backplane), .. } => Ok(CheckedLink::Given(backplane)),
            Self { single_instance: true, .. } => Ok(CheckedLink::DeclaredSingle(log)),
            Self { fleet: None, .. } if store.is_none() => Ok(CheckedLink::NoStore),
            Self { fleet, .. } => {
                let log = log.ok_or_else(|| {
                    let field = if fleet.is_some() { "fleet" } else { "store" };
                    let problem = "there is no store that keeps a log, by which other instances \
                                   could be kept in step";
                    let fix = "give a RedisStore, declare single_instance() or give a backplane";
                    ConfigError::setting(field, problem, fix)
                })?;
                let (window, timeout) = (settings.write_window, settings.store_timeout);
                let fleet = fleet.unwrap_or_default().checked_for_guard(window, timeout)?;
                Ok(CheckedLink::Fleet(fleet, log))
            }
        }
    }
}

impl CheckedLink {
    /// The link, and what the status says of it.
    ///
    /// # Errors
    /// When the server can't keep a log, or shows other instances beside one that is declared to be
    /// the only one.
    pub(super) async fn open(
        self,
        name: &Arc<str>,
        settings: &Settings,
        clock: &Clock,
    ) -> Result<(Arc<dyn Backplane>, Instances), ConfigError> {
        match self {
            Self::Given(backplane) => Ok((backplane, Instances::Backplane)),
            Self::NoStore => Ok((Arc::new(Alone), Instances::NoStore)),
            Self::DeclaredSingle(log) => {
                let single: Arc<dyn Backplane> = match log {
                    Some(log) => {
                        let (name, timeout) = (Arc::clone(name), settings.store_timeout);
                        Arc::new(DeclaredSingle::open(name, log, timeout, clock.clone()).await?)
                    }
                    None => Arc::new(Alone),
                };
                Ok((single, Instances::DeclaredSingle))
            }
            Self::Fleet(fleet, log) => {
                // One that can't be reached now is found by the member's task.
                if let Ok(Err(error)) = clock.timeout(settings.store_timeout, log.prepare()).await
                    && error.kind() == StoreErrorKind::Unsupported
                {
                    return Err(ConfigError::Store(Arc::new(error)));
                }
                let fleet = Fleet::new(Arc::clone(name), log, fleet, clock.clone());
                Ok((Arc::new(fleet), Instances::Fleet))
            }
        }
    }
}

fn contradiction(field: &'static str) -> ConfigError {
    let problem = "means nothing beside another link to other instances";
    ConfigError::setting(field, problem, "give one of fleet, single_instance and backplane")
}
