package contracts_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const suggestionsPath = polman + "/suggestions"

type suggestion struct {
	ID          string `json:"id"`
	PolicyID    string `json:"policyId"`
	AppName     string `json:"appName"`
	Component   string `json:"appComponent"`
	Remediation string `json:"remediation"`
	Value       string `json:"currentValue"`
}

func (w *world) suggestions(t testing.TB, app string) []suggestion {
	t.Helper()
	return decode[[]suggestion](t, w.viewer.get(t, suggestionsPath+"?app="+app))
}

// suggesting is an application with a policy whose remediation a person has to confirm, which is violated.
func suggesting(t *testing.T, w *world) (group, job, policy) {
	t.Helper()
	g, j := w.running(t, freeShop)
	given := usage(g.ID)
	given["properties"] = body{"confirm": true}
	p := w.policy(t, given)
	w.alertmanager().send(t, http.MethodPost, webhook, notice(alert(p, g.ID, "firing", time.Now()))).is(t, http.StatusOK)
	return g, j, p
}

func TestSuggestion_isCarriedOutWhenAPersonConfirmsIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, j, p := suggesting(t, w)
	require.Equal(t, j.Targets, w.job(t, j.ID).Targets, "nothing moves by itself")
	waiting := w.suggestions(t, g.ID)
	require.Len(t, waiting, 1)
	require.Equal(t, suggestion{waiting[0].ID, p.ID, "shop", "web", "reallocate", waiting[0].Value}, waiting[0])
	require.NotEmpty(t, waiting[0].Value)
	require.Len(t, w.messages(t, g.ID, "policy.suggested"), 1)

	confirm := suggestionsPath + "/" + waiting[0].ID + "/confirm"
	w.viewer.send(t, http.MethodPost, confirm, nil).is(t, http.StatusForbidden)
	w.operator.send(t, http.MethodPost, confirm, nil).is(t, http.StatusNoContent)
	w.operator.send(t, http.MethodPost, confirm, nil).is(t, http.StatusNoContent)
	require.NoError(t, w.Broker.Drain(t.Context()))
	require.NotEqual(t, j.Targets, w.job(t, j.ID).Targets)
	require.Len(t, w.messages(t, g.ID, "policy.confirmed"), 1)
	require.Len(t, w.messages(t, g.ID, "policy.remediated"), 1, "once")
	require.Empty(t, w.suggestions(t, g.ID))
	w.operator.send(t, http.MethodPost, suggestionsPath+"/"+waiting[0].ID+"/dismiss", nil).is(t, http.StatusConflict)
	w.legal(t)
}

func TestSuggestion_isDismissed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, j, p := suggesting(t, w)
	path := suggestionsPath + "/" + w.suggestions(t, g.ID)[0].ID
	w.operator.send(t, http.MethodPost, path+"/dismiss", nil).is(t, http.StatusNoContent)
	w.operator.send(t, http.MethodPost, path+"/dismiss", nil).is(t, http.StatusNoContent)
	require.Empty(t, w.suggestions(t, g.ID))
	w.operator.send(t, http.MethodPost, path+"/confirm", nil).is(t, http.StatusConflict)
	require.NoError(t, w.Broker.Drain(t.Context()))
	require.Equal(t, j.Targets, w.job(t, j.ID).Targets)
	require.Contains(t, w.messages(t, g.ID, "policy.skipped")[0], "dismissed by")

	later := alert(p, g.ID, "firing", time.Now().Add(time.Minute))
	w.alertmanager().send(t, http.MethodPost, webhook, notice(later)).is(t, http.StatusOK)
	require.Len(t, w.suggestions(t, g.ID), 1, "another violation is suggested anew")
}

func TestSuggestion_endsWithItsViolation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, j := w.running(t, freeShop)
	given := usage(g.ID)
	given["properties"] = body{"confirm": true}
	p := w.policy(t, given)
	am, start := w.alertmanager(), time.Now().Add(-time.Minute)
	am.send(t, http.MethodPost, webhook, notice(alert(p, g.ID, "firing", start))).is(t, http.StatusOK)
	path := suggestionsPath + "/" + w.suggestions(t, g.ID)[0].ID
	am.send(t, http.MethodPost, webhook, notice(alert(p, g.ID, "resolved", start))).is(t, http.StatusOK)
	require.Empty(t, w.suggestions(t, g.ID))
	require.Contains(t, w.messages(t, g.ID, "policy.skipped")[0], "ended before anybody had confirmed it")
	w.operator.send(t, http.MethodPost, path+"/confirm", nil).is(t, http.StatusConflict)

	am.send(t, http.MethodPost, webhook, notice(alert(p, g.ID, "firing", start.Add(30*time.Second)))).is(t, http.StatusOK)
	path = suggestionsPath + "/" + w.suggestions(t, g.ID)[0].ID
	w.operator.send(t, http.MethodPost, polman+"/policies/"+p.ID+"/deactivate", nil).is(t, http.StatusNoContent)
	require.Empty(t, w.suggestions(t, g.ID), "nobody watches it any more")
	w.operator.send(t, http.MethodPost, path+"/confirm", nil).is(t, http.StatusConflict)
	require.Equal(t, j.Targets, w.job(t, j.ID).Targets)
	w.operator.send(t, http.MethodPost, suggestionsPath+"/"+p.ID+"/confirm", nil).is(t, http.StatusNotFound)
}

// TestSuggestion_ofADescriptor: the key is read, and refused where it can mean nothing.
func TestSuggestion_ofADescriptor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	given := usage("elsewhere-1")
	given["properties"], given["action"] = body{"confirm": true}, body{"url": "http://192.0.2.1/", "httpMethod": "POST"}
	refused := w.operator.send(t, http.MethodPost, polman+"/policies/", given).is(t, http.StatusUnprocessableEntity)
	require.Contains(t, string(refused.body), "properties.confirm")
}
