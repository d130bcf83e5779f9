package files_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/logs"
	"github.com/littoral-project/littoral/shared/logs/files"
	"github.com/littoral-project/littoral/shared/logs/logstest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writer := files.New(files.Options{Dir: dir})
	logstest.Run(t, func(*testing.T) logs.Store { return writer })
}

func TestAnotherReadsWhatOneWrites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := logs.Entry{At: time.Now().UTC(), Application: "../..", Line: "x"}
	require.NoError(t, files.New(files.Options{Dir: dir}).Write(t.Context(), []logs.Entry{e}))
	found, err := files.New(files.Options{Dir: dir}).Read(t.Context(), logs.Query{Application: "../..", From: time.Unix(1, 0), Limit: 1})
	require.NoError(t, err)
	require.Len(t, found, 1)
}

func TestALineThatWasCutOffIsSkipped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := files.New(files.Options{Dir: dir})
	write := func(line string) {
		require.NoError(t, s.Write(t.Context(), []logs.Entry{{At: time.Now(), Application: "a", Line: line}}))
	}
	write("whole")
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	require.NoError(t, err)
	f, err := os.OpenFile(paths[0], os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(`{"at":"20`)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	write("after")
	found, err := s.Read(t.Context(), logs.Query{Application: "a", From: time.Unix(1, 0), Limit: 9})
	require.NoError(t, err)
	require.Len(t, found, 2)
}

func TestTheOldestGoFirst(t *testing.T) {
	t.Parallel()
	s := files.New(files.Options{Dir: t.TempDir(), Size: 20_000, Kept: 24 * time.Hour})
	begin := time.Now().Add(-30 * time.Hour)
	for n := range 300 { // 300 times 100 bytes and more, over 30 hours
		require.NoError(t, s.Write(t.Context(), []logs.Entry{{
			At: begin.Add(time.Duration(n) * 6 * time.Minute), Application: "a", Line: "something of a usual length",
		}}))
	}
	found, err := s.Read(t.Context(), logs.Query{Application: "a", From: time.Unix(1, 0), Limit: 1000})
	require.NoError(t, err)
	require.Greater(t, len(found), 50)
	require.Less(t, len(found), 250)
	require.WithinDuration(t, begin.Add(299*6*time.Minute), found[len(found)-1].At, time.Second)
}
