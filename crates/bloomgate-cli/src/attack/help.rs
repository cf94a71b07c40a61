//! The text of `bloomgate attack --help` after the flags.

/// Examples, the fields of the JSON report, and the exit codes.
pub(crate) const AFTER: &str = "\
Examples:
  bloomgate attack --url 'http://127.0.0.1:8080/products/{id}' \\
    --guard-url http://127.0.0.1:8080/guard --requests 5e5 --legit-share 0.1 --legit-ids 1-1e5
  bloomgate attack --url 'http://127.0.0.1:8080/users/{id}' --ids uuid \\
    --legit-share 0.1 --legit-ids users.txt --header 'Authorization: Bearer TOKEN'

Numbers: 1000000, 1_000_000 and 1e6 are the same.

Fields of --json:
  url, guard_url, ids, profile, seed, connections, rate
                        settings; profile is null unless ids is \"int\"; rate is null in a closed
                        loop
  ended                 \"finished\", \"duration\", \"interrupt\" or \"gave_up\" (server unreachable)
  interrupted           true when ended is \"interrupt\"
  elapsed_seconds       from the first request to the last answer
  requests_per_second   answered requests, attack and legit, per second
  attack, legit         one object each:
    requests            sent
    answered            of these, answered in full; the others are among errors
    latency_us          {p50, p99, p999, max} of answered requests in microseconds, or null
    statuses            {\"404\": n, ...}
  legit_non_2xx, legit_404
                        a 404 of a legit id that exists is a false refusal
  attack_2xx            attack ids that exist after all; choose other ids
  connects              connections opened
  errors                {connect, transport, timeouts, unanswered}: failed connection attempts;
                        connections lost after a request was sent; requests past --timeout;
                        requests under way when the run was stopped
  guard                 null without --guard-url, or when it can't be read afterwards; else the
                        change during the run, by all traffic that the guard saw:
    absent_loads, absent_loads_per_1000    loads that found no row; per 1,000 attack requests, null
                                           if the guard saw none of them
    refused, refused_per_1000              requests refused by the gate; the same
    null_hits                              requests answered by a sentinel in a cache
    passed_maybe, passed_unknown           requests that the gate passed, closed and open
    loads, errors, shed, timeouts          of the loader
    enabled                                whether the guard is on, or null
    gate_open_before, gate_open_after      why the gate was open, or null
  nothing_measured      true when the run shows nothing about absent ids; a warning says why
  warnings              sentences; also on stderr

Exit codes: 0 the run ended as planned; 1 nothing was measured, or the server became unreachable,
or --fail-on-refusal and a legit request was answered 404; 2 a flag is wrong, or the target or the
guard can't be reached before any traffic; 130 stopped by Ctrl-C, after printing the report.";
