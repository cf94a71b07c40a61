//! Tests of the PostgreSQL fixture.

use std::thread;

use super::*;

const LONG: Duration = Duration::from_secs(60);

#[test]
fn psql_returns_rows_as_lines() {
    let server = PostgresServer::start();
    assert_eq!(server.psql("SELECT 1, 'two'; SELECT 3"), "1|two\n3");
    assert_eq!(server.psql("SHOW server_encoding"), "UTF8");
    let error = server.try_psql_at(&server.url(), "SELECT nonsense", LONG).unwrap_err();
    assert!(error.contains("nonsense"), "{error}");
}

#[test]
fn a_query_hangs_while_the_server_is_frozen() {
    let server = PostgresServer::start();
    let url = server.url();
    // This backend exists before the freeze: stopping the postmaster alone wouldn't stop it.
    let long_query = thread::scope(|scope| {
        let query = scope.spawn(|| server.psql("SELECT pg_sleep(0.5), 'done'"));
        assert!(process::until(LONG, || {
            server.psql("SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%0.5%done%'")
                == "2"
        }));
        server.freeze();
        let refused = server.try_psql_at(&url, "SELECT 1", Duration::from_millis(1000));
        assert!(refused.unwrap_err().contains("no answer"));
        assert!(!query.is_finished());
        server.thaw();
        assert_eq!(server.psql("SELECT 1"), "1");
        query.join().unwrap()
    });
    assert_eq!(long_query, "|done");
}

#[test]
fn a_restarted_postgres_keeps_data_and_url() {
    let server = PostgresServer::start();
    let (url, pid) = (server.url(), server.pid());
    server.psql("CREATE TABLE kept (id int); INSERT INTO kept VALUES (7)");
    server.stop();
    assert!(server.try_psql_at(&url, "SELECT 1", LONG).is_err());
    server.restart();
    assert_eq!(server.psql_at(&url, "SELECT id FROM kept"), "7");
    assert_ne!(server.pid(), pid);
    server.kill();
    assert!(server.try_psql_at(&url, "SELECT 1", LONG).is_err());
    server.restart();
    assert_eq!(server.psql("SELECT id FROM kept"), "7");
    server.freeze();
    server.restart();
    assert_eq!(server.psql("SELECT id FROM kept"), "7");
}

#[test]
fn databases_of_the_shared_server_are_separate() {
    let server = PostgresServer::shared();
    let (one, two) = (server.create_database(), server.create_database());
    server.psql_at(&one, "CREATE TABLE here (id int)");
    assert_eq!(server.psql_at(&two, "SELECT to_regclass('here') IS NULL"), "t");
    assert_eq!(server.pid(), PostgresServer::shared().pid());
}

#[test]
fn servers_started_by_parallel_threads_do_not_collide() {
    let servers: Vec<PostgresServer> = thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(PostgresServer::start)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for server in &servers {
        server.psql("CREATE TABLE once (id int)");
    }
}

#[test]
fn postgres_settings_reach_the_server() {
    let server = PostgresServer::with_settings(&["max_connections=17"]);
    assert_eq!(server.psql("SHOW max_connections"), "17");
}

#[test]
fn a_new_identity_differs_from_the_shared_one() {
    let identity = "SELECT system_identifier FROM pg_control_system()";
    let fresh = PostgresServer::with_new_identity();
    assert_ne!(fresh.psql(identity), PostgresServer::shared().psql(identity));
}

#[test]
fn a_replica_replays_its_primary() {
    let server = PostgresServer::start();
    server.psql("CREATE TABLE followed (id int)");
    let replica = server.start_replica();
    server.psql("INSERT INTO followed VALUES (1)");
    assert_eq!(replica.psql("SELECT pg_is_in_recovery()"), "t");
    assert!(process::until(LONG, || replica.psql("SELECT id FROM followed") == "1"));
}

#[test]
fn dropping_removes_processes_and_folder() {
    let server = PostgresServer::start();
    let (pid, folder) = (server.pid(), server.folder.path().to_path_buf());
    drop(server);
    assert!(process::has_ended(pid));
    assert!(!folder.exists());
}
