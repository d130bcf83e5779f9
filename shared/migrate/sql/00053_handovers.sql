-- +goose Up

-- Applications that were handed over to another controller, or by one. A row stays, since its epoch has to grow.
create table handovers (
    application_id uuid primary key, -- with no reference: a receiver has the application from its first lease on
    side       text        not null check (side in ('giver', 'receiver')),
    state      text        not null check (state in ('home', 'offered', 'released', 'accepted', 'held', 'returning', 'over')),
    peer       text        not null default '', -- name of the other controller; "" = any that takes it
    epoch      bigint      not null,            -- of the controllers; that of the present or the latest hand-over
    until      timestamptz,                     -- giver: from then on it may take the application back; receiver: the end of its lease
    looked_at  timestamptz not null default now(), -- when the giver last looked whether that has passed
    recalled   bool        not null default false, -- the giver wants it back
    reason     text        not null default '',
    content    jsonb,                           -- the application, as it was last handed over or reported
    changed_at timestamptz not null default now()
);
create index handovers_open_idx on handovers (state) where state not in ('home', 'over');

alter table applications
    add column away       jsonb,       -- the controller that is responsible instead of this one, with what it reported
    add column acts_until timestamptz; -- the end of the lease under which this controller is responsible; null = for good
alter table applications drop constraint applications_desired_check;
alter table applications add constraint applications_desired_check check (desired in ('running', 'stopped', 'deleted', 'away'));

-- +goose Down
update applications set desired = 'stopped' where desired = 'away';
alter table applications drop constraint applications_desired_check;
alter table applications add constraint applications_desired_check check (desired in ('running', 'stopped', 'deleted'));
alter table applications drop column away, drop column acts_until;
drop table handovers;
