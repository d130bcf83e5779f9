-- +goose Up

-- The owner has said, since it took the job, that it has done its part: what is seen to run from then on is what was asked for.
alter table jobs add column applied boolean not null default false;

-- +goose Down
alter table jobs drop column applied;
