package s3_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/objects"
	"github.com/littoral-project/littoral/shared/objects/objectstest"
	"github.com/littoral-project/littoral/shared/objects/s3"
	"github.com/littoral-project/littoral/shared/objects/s3/s3test"
)

func TestStore(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t)
	objectstest.Run(t, func(t *testing.T) objects.Store {
		t.Helper()
		return s3.New(server.Bucket(t), http.DefaultClient)
	})
}

func TestAWrongKeyIsRefused(t *testing.T) {
	t.Parallel()
	config := s3test.Start(t).Bucket(t)
	config.SecretKey = "another"
	err := s3.New(config, http.DefaultClient).Put(t.Context(), "k", []byte("x"))
	require.ErrorContains(t, err, "SignatureDoesNotMatch")
}
