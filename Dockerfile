# The example service, on a slim Debian.
FROM rust:1.95-slim-bookworm AS build
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN cargo build --release --locked -p product-detail -p bloomgate-cli

FROM debian:bookworm-slim
# CA certificates for servers that are reached through TLS; curl for the health check.
RUN apt-get update && apt-get install --yes --no-install-recommends ca-certificates curl \
    && rm -rf /var/lib/apt/lists/*
RUN useradd --system --home-dir /data --create-home product-detail
COPY --from=build /src/target/release/product-detail /src/target/release/bloomgate /usr/local/bin/
USER product-detail
WORKDIR /data
VOLUME /data
EXPOSE 8080
ENV PRODUCT_DETAIL_LISTEN=0.0.0.0:8080 PRODUCT_DETAIL_DATA_DIR=/data
# Alive, whether the gate is open or not: a service must not be restarted because its database is away.
HEALTHCHECK --interval=5s --timeout=2s --start-period=10s --retries=6 \
    CMD ["curl", "--fail", "--silent", "--output", "/dev/null", "http://127.0.0.1:8080/healthz"]
# SIGTERM is the default stop signal: requests in flight are answered, open writes end.
ENTRYPOINT ["product-detail"]
