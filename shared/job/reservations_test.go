package job_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/application/applicationtest"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

// TestReservationsOfNodes_areThoseOfTheirJobs: whoever changes jobs, and however.
func TestReservationsOfNodes_areThoseOfTheirJobs(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	exec := func(sql string, args ...any) {
		t.Helper()
		_, err := db.Exec(t.Context(), sql, args...)
		require.NoError(t, err)
	}
	exec(`insert into applications (id, name, namespace, descriptor) values (gen_random_uuid(), '', '', '')`)
	random := rand.New(rand.NewPCG(1, 40))
	pick := func(values ...any) any { return values[random.IntN(len(values))] }
	node := func() any { return pick("", "a", "b", "c") }
	for range 300 {
		switch random.IntN(8) {
		case 0, 1:
			exec(`insert into jobs (id, application_id, component, type, state, owner_id, instruction, lost_after, resource_name, cluster,
	node, cpu_milli, memory_bytes, devices)
select gen_random_uuid(), id, gen_random_uuid(), $1, $2, $3, '{}', '0', '', $4, $4, $5, $6, $7 from applications`,
				pick("CreateDeployment", "DeleteDeployment"), pick("Created", "Progressing", "Finished"), pick("", "agent"), node(),
				pick(0, 100, 250), pick(0, 1<<20), pick([]string{}, []string{"/dev/video0"}))
		case 2:
			exec(`delete from jobs where id in (select id from jobs order by md5(id::text || $1::int) limit 1)`, random.IntN(1000))
		case 3:
			exec(`update jobs set cluster = $2, node = $2 where id in (select id from jobs order by md5(id::text || $1::int) limit 3)`,
				random.IntN(1000), node())
		case 4:
			exec(`update jobs set state = $2 where id in (select id from jobs order by md5(id::text || $1::int) limit 3)`,
				random.IntN(1000), pick("Created", "Finished", "Degraded"))
		case 5:
			exec(`update jobs set type = $2, owner_id = $3 where id in (select id from jobs order by md5(id::text || $1::int) limit 3)`,
				random.IntN(1000), pick("CreateDeployment", "DeleteDeployment"), pick("", "agent"))
		default:
			exec(`update jobs set cpu_milli = $2, memory_bytes = $3, devices = $4, cluster = case when $5 then cluster else $6 end
where id in (select id from jobs order by md5(id::text || $1::int) limit 3)`,
				random.IntN(1000), pick(0, 100, 700), pick(0, 1<<30), pick([]string{}, []string{"/dev/video0"}), random.IntN(2) == 0, node())
		}
		applicationtest.RequireReservations(t, db)
	}
	exec(`delete from jobs`)
	applicationtest.RequireReservations(t, db)
}
