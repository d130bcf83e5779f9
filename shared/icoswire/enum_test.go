package icoswire_test

import (
	"encoding/json"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/icoswire"
)

func TestID(t *testing.T) {
	t.Parallel()
	var id icoswire.ID
	known := uuid.New()
	require.NoError(t, json.Unmarshal([]byte(`"`+known.String()+`"`), &id))
	require.Equal(t, icoswire.ID{UUID: known}, id)
	require.NoError(t, json.Unmarshal([]byte(`""`), &id))
	require.Zero(t, id)
	require.ErrorContains(t, json.Unmarshal([]byte(`"deployment/5"`), &id), "is not a UUID")
}
