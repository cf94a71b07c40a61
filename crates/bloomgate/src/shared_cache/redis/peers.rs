//! The list of live instances in Redis.

use std::time::Duration;

use futures_util::future::BoxFuture;
use redis::RedisResult;

use super::RedisStore;
use super::commands::{millis, store_error};
use crate::error::StoreError;
use crate::ports::{InstanceId, Peer, PeerRegistry};

/// The hash of a namespace's instances.
fn name_of(namespace: &str) -> String {
    format!("bloomgate:{namespace}:members")
}

impl PeerRegistry for RedisStore {
    fn heartbeat<'a>(
        &'a self,
        namespace: &'a str,
        instance: InstanceId,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Vec<Peer>, StoreError>> {
        Box::pin(async move {
            let name = name_of(namespace);
            let others: RedisResult<Vec<(String, u64)>> = self
                .run(|form| {
                    let mut command = self.0.scripts.heartbeat.command(form, &[name.as_bytes()]);
                    command.arg(instance.to_hex()).arg(millis(ttl));
                    command
                })
                .await;
            let others = others.map_err(|error| store_error("heartbeat", error))?;
            Ok(others.into_iter().map(|(instance, count)| Peer::new(instance, count)).collect())
        })
    }

    fn leave<'a>(
        &'a self,
        namespace: &'a str,
        instance: InstanceId,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let mut command = redis::cmd("HDEL");
            command.arg(name_of(namespace)).arg(instance.to_hex());
            self.0.link.query(&command).await.map_err(|error| store_error("leave", error))
        })
    }
}
