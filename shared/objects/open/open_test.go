package open_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/objects/folder"
	"github.com/littoral-project/littoral/shared/objects/open"
	"github.com/littoral-project/littoral/shared/objects/s3"
)

func TestStore(t *testing.T) {
	t.Parallel()
	at := func(url string) open.Config { return open.Config{URL: url, AccessKey: "a", SecretKey: "b"} }
	none, err := open.Store(open.Config{}, http.DefaultClient)
	require.NoError(t, err)
	require.Nil(t, none)
	file, err := open.Store(open.Config{URL: "file:///var/objects"}, http.DefaultClient)
	require.NoError(t, err)
	require.IsType(t, &folder.Store{}, file)
	for _, url := range []string{
		"s3://bucket", "s3://bucket/a/b/", "s3://bucket?region=eu-west-1",
		"s3://b?endpoint=http://minio:9000&path_style=true",
	} {
		store, err := open.Store(at(url), http.DefaultClient)
		require.NoError(t, err, url)
		require.IsType(t, &s3.Store{}, store)
	}
	for _, url := range []string{
		"bucket", "ftp://x", "file://host/x", "file:relative", "s3:///x", "s3://k:s@bucket", "s3://bucket/a b",
		"s3://bucket?endpoint=minio", "s3://bucket?what=1", "s3://%zz",
	} {
		_, err := open.Store(at(url), http.DefaultClient)
		require.ErrorContains(t, err, "OBJECTS_URL", url)
	}
	_, err = open.Store(open.Config{URL: "s3://bucket"}, http.DefaultClient)
	require.ErrorContains(t, err, "AWS_ACCESS_KEY_ID")
}
