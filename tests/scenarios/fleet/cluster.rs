//! Three instances in one fleet, each of which reaches Redis through a proxy of its own.

use std::sync::Arc;
use std::time::Duration;

use sqlx::{Connection as _, PgConnection};
use testbed::net::Proxy;
use testbed::{PostgresServer, RedisServer};

use crate::ledger::Ledger;
use crate::service::{Service, Setup};

/// Rows at the start.
pub(crate) const PRODUCTS: i64 = 300;
/// Longer than a write waits for a silent member, short for the first start over an empty Redis.
pub(crate) const WINDOW: Duration = Duration::from_secs(6);
/// The default lease of an instance.
pub(crate) const LEASE: Duration = Duration::from_secs(3);

/// Three instances with their servers.
pub(crate) struct Cluster {
    pub(crate) services: Vec<Service>,
    /// The way of each instance to Redis.
    pub(crate) proxies: Vec<Proxy>,
    pub(crate) redis: RedisServer,
    /// What its clients know of its rows.
    pub(crate) ledger: Arc<Ledger>,
    database: String,
}

impl Cluster {
    /// Starts the fleet, and waits until all refuse.
    pub(crate) fn start() -> Self {
        Self::start_with(&[&[], &[], &[]])
    }

    /// The same, with variables of each instance's environment.
    pub(crate) fn start_with(envs: &[&[(&str, &str)]; 3]) -> Self {
        let redis = RedisServer::start();
        let proxies = (0..3).map(|_| Proxy::start(redis.port())).collect();
        let database = PostgresServer::shared().create_database();
        let ledger = Arc::new(Ledger::new(PRODUCTS, WINDOW + Duration::from_secs(1)));
        let mut cluster = Self { services: Vec::new(), proxies, redis, ledger, database };
        for (number, envs) in envs.iter().enumerate() {
            let service = cluster.launch_with(number, envs);
            cluster.services.push(service);
        }
        cluster.until_closed();
        cluster
    }

    /// Starts another process in the place of an instance.
    pub(crate) fn launch(&self, number: usize) -> Service {
        self.launch_with(number, &[])
    }

    fn launch_with(&self, number: usize, envs: &[(&str, &str)]) -> Service {
        let redis = format!("redis://127.0.0.1:{}", self.proxies[number].port());
        let name = format!("instance {number}");
        let window = format!("{}s", WINDOW.as_secs());
        Service::start(&Setup {
            database_url: Some(self.database.clone()),
            products: PRODUCTS as u64,
            flags: &[
                "--redis-url",
                &redis,
                "--instance-name",
                &name,
                "--write-window",
                &window,
                "--gate",
                "exact",
            ],
            envs,
            ..Setup::default()
        })
    }

    /// Waits until every instance refuses.
    pub(crate) fn until_closed(&self) {
        for service in &self.services {
            service.until_closed();
        }
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        self.services.iter().map(|service| service.url.clone()).collect()
    }

    /// The ids of the database's rows.
    pub(crate) fn ids(&self) -> Vec<i64> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut connection = PgConnection::connect(&self.database).await.unwrap();
            let ids = sqlx::query_scalar("SELECT id FROM products");
            ids.fetch_all(&mut connection).await.unwrap()
        })
    }
}
