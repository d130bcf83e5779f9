package main

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAddressesTakeTurns: a function has one of two users, and the other one's address is made while it still has the first.
func TestAddressesTakeTurns(t *testing.T) {
	t.Parallel()
	const address = "postgres://littoral:secret@pgbouncer:5432/littoral?default_query_exec_mode=cache_describe"
	text := ""
	does := func(args ...string) map[string]*url.URL {
		t.Helper()
		var out bytes.Buffer
		require.NoError(t, run(args, strings.NewReader(text), &out))
		text = out.String()
		var s secret
		require.NoError(t, json.Unmarshal(out.Bytes(), &s))
		require.Equal(t, "littoral-roles", s.Metadata["name"])
		all := map[string]*url.URL{}
		for name, value := range s.Data {
			u, err := url.Parse(string(value))
			require.NoError(t, err)
			all[name] = u
		}
		return all
	}
	filled := does("fill", address, "acm-status")
	require.Len(t, filled, 1)
	first := filled["acm-status"]
	require.Equal(t, "littoral_acm_status_1", first.User.Username())
	require.Equal(t, "pgbouncer:5432/littoral?default_query_exec_mode=cache_describe", first.Host+first.RequestURI())

	filled = does("fill", address, "acm-status", "bus-get")
	require.Equal(t, first, filled["acm-status"])
	require.NotEqual(t, password(first), password(filled["bus-get"]))

	for _, want := range []string{"littoral_acm_status_2", "littoral_acm_status_1"} {
		next := does("next", address, "acm-status")
		require.Equal(t, want, next["acm-status.next"].User.Username())
		require.NotEqual(t, want, next["acm-status"].User.Username())
		require.Equal(t, next, does("next", address, "acm-status"), "again")
		used := does("use", "acm-status")
		require.Equal(t, next["acm-status.next"], used["acm-status"])
		require.Len(t, used, 2)
	}
	require.Error(t, run([]string{"use", "acm-status"}, strings.NewReader(text), &bytes.Buffer{}))
	require.Error(t, run([]string{"next", address, "acm-pods"}, strings.NewReader(text), &bytes.Buffer{}))
}

func password(u *url.URL) string {
	p, _ := u.User.Password()
	return p
}
