-- +goose Up

-- Whoever lets a component stay asks which policies are violated, those about several applications included.
create index policies_violated_idx on policies (instance) where deleted_at is null and phase = 'violated';

-- +goose Down
drop index policies_violated_idx;
