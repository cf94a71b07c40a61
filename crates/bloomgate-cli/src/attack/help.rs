//! What `bloomgate attack --help` says after the flags.

/// The fields of the JSON report, the exit codes and an example.
pub(crate) const AFTER: &str = "\
Example:
  bloomgate attack --url 'http://127.0.0.1:8080/products/{id}' \\
    --guard-url http://127.0.0.1:8080/guard --requests 500000 --legit-share 0.1 --legit-ids 1-100000

Fields of --json:
  url, profile, seed, connections, rate    what was asked; rate is null in a closed loop
  ended                 \"finished\", \"duration\", \"interrupt\" or \"gave_up\" (no server to talk to)
  interrupted           true when ended is \"interrupt\"
  elapsed_seconds       from the first request to the last answer
  requests_per_second   answered requests, attack and legit, per second
  attack, legit      one object each:
    requests            sent
    answered            of these, answered in full; the others are among errors
    latency_us          {p50, p99, p999, max} of answered requests in microseconds, or null
    statuses            {\"404\": n, ...}
  legit_non_2xx, legit_404           a 404 of a legit id that exists is a false refusal
  attack_2xx            attack ids that exist after all; choose another range of ids
  connects              connections opened
  errors                {connect, transport, timeouts, unanswered}: failed connection attempts;
                        connections lost after a request was sent; requests past --timeout;
                        requests under way when the run was stopped
  guard                 null without --guard-url, or when it could not be read afterwards; else the
                        change during the run, by all traffic that the guard saw:
    absent_loads, absent_loads_per_1000    loads that found no row; per 1,000 attack requests
    refused, refused_per_1000              requests refused by the gate; per 1,000 attack requests
    loads, errors, shed, timeouts          of the loader; null if the document lacks them
    enabled             whether the guard was on, or null
  warnings              sentences

Exit codes: 0 the run ended as planned; 1 --fail-on-refusal and a legit request was answered
404, or no server to talk to; 2 a flag is wrong, or the target or guard can't be reached before
any traffic; 130 stopped by Ctrl-C, after printing what there is.";
