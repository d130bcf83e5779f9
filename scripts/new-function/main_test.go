package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

const root = "../.."

// TestEachKindCompiles builds the functions and their tests as if they were in the tree, which stays as it is.
func TestEachKindCompiles(t *testing.T) {
	t.Parallel()
	here, err := filepath.Abs(root)
	require.NoError(t, err)
	dir, overlay, arguments := t.TempDir(), map[string]string{}, []string{"test", "-vet=off", "-c", "-o", os.DevNull, "-overlay", ""}
	for kind, name := range map[string]string{
		"operation": "console/first-try", "reaction": "pdlc/second-try", "task": "lighthouse/third", "stream": "events/fourth",
	} {
		made, err := files(root, name, kind, "job.ready")
		require.NoError(t, err)
		arguments = append(arguments, "./functions/"+name)
		for file, text := range made {
			if filepath.Ext(file) != ".go" {
				continue
			}
			at := filepath.Join(dir, strings.ReplaceAll(file, "/", "-")+".go")
			require.NoError(t, os.WriteFile(at, text, 0o600))
			overlay[filepath.Join(here, file)] = at
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": overlay})
	require.NoError(t, err)
	arguments[6] = filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(arguments[6], text, 0o600))
	build := exec.Command("go", arguments...)
	build.Dir = root
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// withComponent is a tree, as far as it is read, with a component that has no function yet.
func withComponent(t *testing.T, name, does string) string {
	t.Helper()
	dir := t.TempDir()
	for _, file := range []string{"functions/components.txt", openAPI} {
		text, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		if file == "functions/components.txt" {
			text = append(text, name+" "+does+"\n"...)
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), text, 0o600))
	}
	return dir
}

func TestWhatAnOperationGets(t *testing.T) {
	t.Parallel()
	made, err := files(withComponent(t, "novel", "what nobody has done yet"), "novel/first-try", "operation", "")
	require.NoError(t, err)
	require.Len(t, made, 3)
	var page struct {
		Tags  []struct{ Name string }
		Paths map[string]struct{ Get struct{ OperationID string } }
	}
	require.NoError(t, yaml.Unmarshal(made[openAPI], &page))
	require.Equal(t, "novelFirstTry", page.Paths["/novel/first-try"].Get.OperationID)
	require.Equal(t, "novel", page.Tags[len(page.Tags)-1].Name)

	made, err = files(root, "jobmanager/first-try", "operation", "")
	require.NoError(t, err)
	require.Len(t, made, 3)
	require.Contains(t, string(made[openAPI]), "/jobmanager/first-try:\n    get:\n      tags: [applications]\n")
}

func TestWhatAReactionGets(t *testing.T) {
	t.Parallel()
	made, err := files(root, "jobmanager/first-try", "reaction", "job.ready")
	require.NoError(t, err)
	require.Len(t, made, 4)
	require.Contains(t, string(made["triggers/jobmanager-first-try.yaml"]), "type: dev.littoral.job.ready.v1\n")
	require.Contains(t, string(made["triggers/kustomization.yaml"]), "  - jobmanager-displace.yaml\n  - jobmanager-first-try.yaml\n")
}

func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	for want, given := range map[string][3]string{
		`there is no component "jobmanger": choose one of acm, aggregator`: {"jobmanger/pause", "operation", ""},
		"is not component/operation":                                       {"jobmanager/Pause", "operation", ""},
		`there is no kind "cron"`:                                          {"jobmanager/pause", "cron", ""},
		`there is no event type "application.plc"`:                         {"jobmanager/pause", "reaction", "application.plc"},
		"is there already":                                                 {"jobmanager/group-get", "operation", ""},
		"more than 40 characters":                                          {"jobmanager/a-function-with-a-name-that-is-long", "task", ""},
	} {
		_, err := files(root, given[0], given[1], given[2])
		require.ErrorContains(t, err, want)
	}
}
