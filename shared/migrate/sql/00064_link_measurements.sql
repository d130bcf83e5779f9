-- +goose Up

-- What was measured between two nodes last, by the names that telemetry has for them. A figure that was not measured is null.
create table link_measurements (
    source          text        not null,
    target          text        not null,
    rtt             float8,               -- ms
    jitter          float8,               -- ms
    loss            float8,               -- percent
    throughput      float8,               -- kbit/s, what one TCP connection got
    bandwidth       float8,               -- kbit/s, what the link carries
    retransmissions float8,               -- percent
    energy          float8,               -- W
    measured_at     timestamptz not null,
    degraded        text        not null default '', -- why it does not keep its channels; empty: it does
    primary key (source, target)
);

-- +goose Down
drop table link_measurements;
