package connect_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/mdm/connect"
	"github.com/littoral-project/littoral/shared/objects/folder"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

// TestDataSetsOfAFolder: what lies there is in the graph with size, format, compliance, age and places, and only while it lies there.
func TestDataSetsOfAFolder(t *testing.T) {
	t.Parallel()
	db, dir := storetest.New(t), t.TempDir()
	files := folder.New(dir)
	now := time.Now()
	put := func(key, text string, old time.Duration) {
		t.Helper()
		require.NoError(t, files.Put(t.Context(), key, []byte(text)))
		require.NoError(t, os.Chtimes(filepath.Join(dir, key), now, now.Add(-old)))
	}
	put("frames/2026/a.parquet", "0123456789", 3*time.Hour)
	put("frames/readme.txt", "abc", 30*time.Hour)
	put("frames/dataset.json", `{"compliance": "High", "stored_on": ["edge/edge-1", "core"]}`, 0)
	put("model.onnx", "12345", 10*time.Minute)
	put("broken/a.csv", "1", time.Hour*24*30)
	put("broken/dataset.json", `{"compliance": 3}`, 0)
	look := func() {
		t.Helper()
		require.NoError(t, connect.DataSets(storetest.As(t.Context(), "mdm-datasets"), db, files, now))
	}
	look()
	attribute := func(name, of string) (text string) {
		t.Helper()
		err := db.QueryRow(t.Context(), `select coalesce(properties ->> $2, '') from mdm_entities where type = 'dataset' and identifier = $1`, name, of).Scan(&text)
		require.NoError(t, err, name)
		return text
	}
	for of, want := range map[string]string{"size": "13", "files": "2", "format": "parquet", "compliance": "High", "freshness": "Day", "fault": ""} {
		require.Equal(t, want, attribute("frames", of), of)
	}
	require.Equal(t, "onnx", attribute("model.onnx", "format"))
	require.Equal(t, "Hour", attribute("model.onnx", "freshness"))
	require.Contains(t, attribute("broken", "fault"), "dataset.json cannot be read")
	require.Equal(t, "Older", attribute("broken", "freshness"))
	count := func(sql string) (n int) {
		t.Helper()
		require.NoError(t, db.QueryRow(t.Context(), sql).Scan(&n))
		return n
	}
	const stored = `select count(*) from mdm_relations where type = 'STORED_ON'`
	require.Equal(t, 2, count(stored))

	const events = `select events from mdm_connectors where name = 'Data sets of a folder or bucket'`
	before := count(events)
	look()
	require.Equal(t, before, count(events), "what is known is not said again")

	put("frames/dataset.json", `{"compliance": "High", "stored_on": ["core"]}`, 0)
	require.NoError(t, files.Delete(t.Context(), "model.onnx"))
	look()
	require.Equal(t, 1, count(stored))
	require.Equal(t, 2, count(`select count(*) from mdm_entities where type = 'dataset'`))
}
