package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/cli"
)

// cluster answers like kubectl for a cluster on which all is well; tests put their own lines before its.
const cluster = `
case "$*" in
"version -o json") echo '{"clientVersion": {"gitVersion": "v1.34.1"}, "serverVersion": {"gitVersion": "v1.33.4"}}' ;;
"get crd -o name") printf 'customresourcedefinition.apiextensions.k8s.io/%s\n' services.serving.knative.dev \
	brokers.eventing.knative.dev triggers.eventing.knative.dev pingsources.sources.knative.dev ;;
"-n knative-"*) echo 1.19.4 ;;
"auth can-i "*) echo yes ;;
"-n littoral get secret "*) printf 'DATABASE_URL\nEVENT_KEY\n' ;;
"-n littoral get job"*) echo '{"items": [{"metadata": {"name": "migrate"}, "status": {"succeeded": 1}}]}' ;;
"-n littoral get "*) echo '{"items": [{"metadata": {"name": "default"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}]}' ;;
*) echo "error: what is $*?" >&2; exit 1 ;;
esac
`

type doctored struct {
	Check, State, Message, Advice string
}

// examine runs the doctor with a kubectl that answers by the script, and a server.
func examine(t *testing.T, script string, answer http.HandlerFunc, now time.Time, args ...string) (code int, wrong map[string]doctored) {
	t.Helper()
	kubectl := filepath.Join(t.TempDir(), "kubectl")
	require.NoError(t, os.WriteFile(kubectl, []byte("#!/bin/sh\n"+script+cluster), 0o700))
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	env := map[string]string{
		"KUBECTL": kubectl, "LITTORAL_SERVER": server.URL, "LITTORAL_HOME": t.TempDir(), "XDG_CONFIG_HOME": t.TempDir(), "LITTORAL_TOKEN": "t",
	}
	var out, failed bytes.Buffer
	sh := cli.Shell{
		Stdout: &out, Stderr: &failed, Getenv: func(name string) string { return env[name] }, Now: func() time.Time { return now },
	}
	code = sh.Run(context.Background(), append([]string{"doctor", "-o", "json"}, args...))
	var found []doctored
	require.NoError(t, json.Unmarshal(out.Bytes(), &found), "%s%s", &out, &failed)
	wrong = map[string]doctored{}
	for _, f := range found {
		if f.State != "ok" {
			wrong[f.Check] = f
			require.NotEmpty(t, f.Message)
		}
		if f.State == "wrong" {
			require.NotEmpty(t, f.Advice, "it says what to do about %s", f.Message)
		}
	}
	return code, wrong
}

func well(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("[]")) }

func answers(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		script string
		answer http.HandlerFunc
		apart  time.Duration
		args   []string
		wrong  string // the check; "" = all is well
		says   string
		warns  bool // and that alone
	}{
		"all is well":                 {},
		"no cluster":                  {script: `echo "error: connection refused" >&2; exit 1`, wrong: "cluster", says: "connection refused"},
		"no Knative":                  {script: `[ "$1" != get ] || exit 0`, wrong: "types", says: "triggers.eventing.knative.dev"},
		"an old Knative":              {script: `[ "$2" != knative-serving ] || { echo 1.18.0; exit 0; }`, wrong: "knative-serving", says: "1.18.0"},
		"a Knative built from source": {script: `[ "$2" != knative-serving ] || { echo devel; exit 0; }`, wrong: "knative-serving", says: "devel", warns: true},
		"an old kubectl":              {script: `[ "$1" != version ] || { echo '{"clientVersion": {"gitVersion": "v1.30.0"}, "serverVersion": {"gitVersion": "v1.30.0"}}'; exit 0; }`, wrong: "cluster", says: "1.30"},
		"no right":                    {script: `[ "$4" != secrets ] || { echo no; exit 1; }`, wrong: "permissions", says: "create secrets"},
		"no key":                      {script: `[ "$4" != secret ] || { echo DATABASE_URL; exit 0; }`, wrong: "secret", says: "EVENT_KEY"},
		"a Trigger that waits":        {script: `case "$4" in trigger.*) echo '{"items": [{"metadata": {"name": "place"}, "status": {"conditions": [{"type": "Ready", "status": "False", "message": "no Broker"}]}}]}'; exit 0 ;; esac`, wrong: "trigger", says: "place is not ready: no Broker"},
		"no function":                 {script: `case "$4" in service.*) echo '{"items": []}'; exit 0 ;; esac`, wrong: "service", says: "none"},
		"a migration that failed":     {script: `case "$3 $4" in "get jobs."*) echo '{"items": [{"metadata": {"name": "migrate"}, "status": {"failed": 3}}]}'; exit 0 ;; esac`, wrong: "schema", says: "not migrated"},
		"a schema that is older": {script: `case "$3 $4" in
"get jobs."*) echo '{"items": [{"metadata": {"name": "migrate", "labels": {"app.kubernetes.io/version": "v1.2.9"}}, "status": {"succeeded": 1}}]}'; exit 0 ;;
"get service."*) echo '{"items": [{"metadata": {"name": "a", "labels": {"app.kubernetes.io/version": "v1.3.0"}}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}]}'; exit 0 ;;
esac`, wrong: "schema", says: "of v1.2.9, and functions are of v1.3.0"},
		"two versions": {script: `case "$4" in service.*) echo '{"items": [
{"metadata": {"name": "a", "labels": {"app.kubernetes.io/version": "v1.2.9"}}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}},
{"metadata": {"name": "b", "labels": {"app.kubernetes.io/version": "v1.3.0"}}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}]}'; exit 0 ;; esac`, wrong: "version", says: "v1.2.9 and v1.3.0"},
		"no database":  {answer: answers(http.StatusServiceUnavailable), wrong: "database", says: "could not read"},
		"no token":     {answer: answers(http.StatusUnauthorized), wrong: "token", says: "401"},
		"another time": {apart: time.Hour, wrong: "clock", says: "differ by"},
		"nobody is asked before a deployment": {
			answer: answers(http.StatusServiceUnavailable), script: `[ "$2" != littoral ] || exit 1`, args: []string{"--before-deploy"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer, args := row.answer, row.args
			if answer == nil {
				answer = well
			}
			if args == nil {
				args = []string{"--cluster"}
			}
			code, wrong := examine(t, row.script+"\n", answer, time.Now().Add(row.apart), args...)
			if row.wrong == "" {
				require.Empty(t, wrong)
				require.Zero(t, code)
				return
			}
			require.Equal(t, !row.warns, code == 1)
			require.Contains(t, wrong, row.wrong)
			require.Len(t, wrong, 1)
			require.Contains(t, wrong[row.wrong].Message, row.says)
		})
	}
}

// TestDoctorsForms: what is wrong comes first among the names, and the advice is a column of the wide table.
func TestDoctorsForms(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(answers(http.StatusServiceUnavailable))
	t.Cleanup(server.Close)
	env := map[string]string{"LITTORAL_SERVER": server.URL, "XDG_CONFIG_HOME": t.TempDir(), "LITTORAL_HOME": t.TempDir()}
	doctor := func(form string) string {
		r := run(t.Context(), time.Now, env, "", "doctor", "-o", form)
		require.Equal(t, 1, r.code, r.err)
		return r.out
	}
	require.Equal(t, "check/database\ncheck/server\ncheck/clock\n", doctor("name"))
	require.Regexp(t, `CHECK +STATE +FOUND +ADVICE\n`, doctor("wide"))
	require.Regexp(t, `database +wrong +an operation could not read it +look at Postgres`, doctor("wide"))
	require.Contains(t, doctor("yaml"), "check: database\n")
}

// TestSkew: one minor version apart is allowed.
func TestSkew(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		a, b  string
		n     int
		known bool
	}{
		{"v1.2.3", "v1.2.0", 0, true},
		{"v1.2.3", "v1.3.1-rc.1", 1, true},
		{"v0.4.0", "v0.2.9", 2, true},
		{"v2.0.0", "v1.9.0", 2, true},
		{"v0.0.0-20261126145251-337ee48a", "v1.9.0", 0, false},
		{"(devel)", "v1.9.0", 0, false},
	} {
		n, known := cli.MinorsApart(row.a, row.b)
		require.Equal(t, row.n, n, "%+v", row)
		require.Equal(t, row.known, known, "%+v", row)
	}
}
