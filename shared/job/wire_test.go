package job_test

import (
	"encoding/json"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/job"
)

func TestID(t *testing.T) {
	t.Parallel()
	var id job.ID
	known := uuid.New()
	require.NoError(t, json.Unmarshal([]byte(`"`+known.String()+`"`), &id))
	require.Equal(t, job.ID{UUID: known}, id)
	require.NoError(t, json.Unmarshal([]byte(`""`), &id))
	require.False(t, id.Given())
	require.ErrorContains(t, json.Unmarshal([]byte(`"deployment/5"`), &id), "is not a UUID")
}
