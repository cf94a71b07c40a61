//! The first start without any options.

use crate::fixture::{Service, json};

#[test]
fn the_default_table_is_large_and_the_first_lines_help() {
    let service = Service::ready(&[]);
    assert_eq!(json(&service.get("/products/100000"))["id"], 100_000);
    assert_eq!(service.number("/gate/items"), 100_000);
    assert_eq!(service.get("/healthz").status, 200);
    let lines = service.program.stdout();
    let commands: Vec<&str> = lines.lines().filter(|line| line.contains("curl ")).collect();
    assert_eq!(commands.len(), 3, "{lines}");
    for (command, status) in commands.iter().zip([200, 404, 200]) {
        let (_, path) = command.split_once(&service.url).unwrap();
        assert_eq!(service.get(path).status, status, "{command}");
    }
    // No bar where there is no terminal.
    let log = service.program.stderr();
    assert!(!log.contains('\r') && !log.contains("adding products"), "{log}");
}
