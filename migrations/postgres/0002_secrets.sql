-- The secret of the gates' hash, in hexadecimal: one for all instances of a service, so that they can copy
-- gates from one another. Whoever can read it can compute ids that pass a gate.
CREATE TABLE gate_secrets (
    namespace text PRIMARY KEY,
    secret    text NOT NULL
);
