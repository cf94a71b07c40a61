-- The products.
CREATE TABLE products (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name        text        NOT NULL CHECK (char_length(name) BETWEEN 1 AND 200),
    price_cents bigint      NOT NULL CHECK (price_cents >= 0),
    description text        NOT NULL CHECK (char_length(description) <= 10000),
    created_at  timestamptz NOT NULL DEFAULT now()
);
