-- +goose Up

-- Where users are (ETSI MEC 013): access points with their zones, the last position of each user, and who wants to know.
create table mec_access_points (
    zone_id          text not null,
    access_point_id  text not null,
    connection_type  text not null,
    operation_status text not null,
    realm            text not null,
    latitude         float8,
    longitude        float8,
    primary key (zone_id, access_point_id)
);
create table mec_users (
    address         text        primary key,
    zone_id         text        not null,
    access_point_id text        not null,
    latitude        float8,
    longitude       float8,
    accuracy        float8,               -- m
    at              timestamptz not null
);
create index on mec_users (zone_id, access_point_id);
create table mec_subscriptions (
    id         uuid        primary key,
    kind       text        not null, -- users, zones, area, distance
    owner      text        not null,
    body       json        not null,
    created_at timestamptz not null default now(),
    expires_at timestamptz,          -- null: never
    expired    bool        not null default false, -- its subscriber was told
    next_at    timestamptz,          -- of one that is periodic
    left_over  int                   -- how many reports are still to come; null: no end
);
create index on mec_subscriptions (next_at) where next_at is not null;

-- +goose Down
drop table mec_subscriptions, mec_users, mec_access_points;
