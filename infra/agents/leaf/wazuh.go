package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
)

// wazuh is the API of a Wazuh server, which has the results of the assessments that its agent on this host made, and its indexer, which has
// what its scanner found vulnerable there. nil = there is none.
type wazuh struct {
	client      *http.Client
	url, name   string
	signIn      account
	indexer     string // "" = nobody is asked for vulnerabilities
	indexerUser account

	asked      time.Time
	scores     []wazuhScore
	vulnerable map[string]float64 // how much of each severity
}

// account is a user with a password that is in a file, as it may change.
type account struct{ user, passwordFile string }

func (a account) signs(req *http.Request) error {
	password, err := os.ReadFile(a.passwordFile)
	if err != nil {
		return err
	}
	req.SetBasicAuth(a.user, strings.TrimSpace(string(password)))
	return nil
}

type wazuhScore struct {
	Policy string   `json:"policy_id"`
	Score  *float64 `json:"score"`
	Pass   float64  `json:"pass"`
	Fail   float64  `json:"fail"`
}

// wazuhEvery is how often the server is asked: agents assess some times a day.
const wazuhEvery = 10 * time.Minute

func newWazuh(o options) (*wazuh, error) {
	switch {
	case o.WazuhURL != "":
	case o.WazuhIndexer != "":
		return nil, errors.New("wazuh: the indexer alone does not tell whose a host is: set the server's URL too")
	default:
		return nil, nil //nolint:nilnil // there is none
	}
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.WazuhCA != "" {
		pem, err := os.ReadFile(o.WazuhCA)
		if err != nil {
			return nil, fmt.Errorf("wazuh: %w", err)
		}
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("wazuh: %s has no certificate", o.WazuhCA)
		}
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: settings, MaxIdleConns: 1}, Timeout: 10 * time.Second}
	return &wazuh{
		client: client, url: strings.TrimRight(o.WazuhURL, "/"), signIn: account{o.WazuhUser, o.WazuhPassword}, name: o.WazuhAgent,
		indexer: strings.TrimRight(o.WazuhIndexer, "/"), indexerUser: account{o.WazuhIndexerUser, o.WazuhIndexerPassword},
	}, nil
}

// token signs in; it is good for a quarter of an hour, so each time anew.
func (w *wazuh) token(ctx context.Context) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+"/security/user/authenticate", http.NoBody)
	if err != nil {
		return "", err
	}
	if err := w.signIn.signs(req); err != nil {
		return "", err
	}
	var answer struct{ Data struct{ Token string } }
	if err := doJSON(w.client, req, &answer); err != nil {
		return "", err
	}
	return answer.Data.Token, nil
}

// agent is the name of this host's agent.
func (w *wazuh) agent(hostname string) string {
	if w.name != "" {
		return w.name
	}
	return hostname
}

// ask asks for the scores of the policies that the agent of that name was assessed by, and for what is vulnerable on its host.
func (w *wazuh) ask(ctx context.Context, hostname string) error {
	token, err := w.token(ctx)
	if err != nil {
		return err
	}
	name := w.agent(hostname)
	var agents struct {
		Data struct {
			Items []struct{ ID, Name string } `json:"affected_items"`
		}
	}
	if err := getJSON(ctx, w.client, w.url+"/agents?select=id,name&name="+url.QueryEscape(name), token, &agents); err != nil {
		return err
	}
	id := ""
	for _, a := range agents.Data.Items {
		if a.Name == name {
			id = a.ID
		}
	}
	if id == "" {
		return fmt.Errorf("there is no agent %q", name)
	}
	var found struct {
		Data struct {
			Items []wazuhScore `json:"affected_items"`
		}
	}
	if err := getJSON(ctx, w.client, w.url+"/sca/"+url.PathEscape(id), token, &found); err != nil {
		return err
	}
	w.scores = found.Data.Items
	if w.indexer == "" {
		return nil
	}
	counts, err := w.search(ctx, id, name)
	if err == nil {
		w.vulnerable = counts
	}
	return err
}

// untriaged is the severity of what nobody has judged yet.
const untriaged = "Untriaged"

// search asks the indexer how much of each severity is vulnerable on the host of an agent. Several servers may share an indexer, each
// with an agent of that id. nil = nothing was found, as where the scanner did not look yet.
func (w *wazuh) search(ctx context.Context, id, name string) (map[string]float64, error) {
	type object = map[string]any
	body, err := json.Marshal(object{
		"size":  0,
		"query": object{"bool": object{"filter": []object{{"term": object{"agent.id": id}}, {"term": object{"agent.name": name}}}}},
		"aggs":  object{"severity": object{"terms": object{"field": "vulnerability.severity", "missing": untriaged}}},
	})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.indexer+"/wazuh-states-vulnerabilities-*/_search", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if err := w.indexerUser.signs(req); err != nil {
		return nil, err
	}
	var answer struct {
		Aggregations struct {
			Severity struct {
				Buckets []struct {
					Key   string  `json:"key"`
					Count float64 `json:"doc_count"`
				}
			}
		}
	}
	if err := doJSON(w.client, req, &answer); err != nil {
		return nil, fmt.Errorf("indexer: %w", err)
	}
	if len(answer.Aggregations.Severity.Buckets) == 0 {
		return nil, nil //nolint:nilnil // nothing is known
	}
	counts := map[string]float64{"Critical": 0, "High": 0, "Medium": 0, "Low": 0} // what is mended does not just vanish
	for _, of := range answer.Aggregations.Severity.Buckets {
		severity := of.Key
		if severity == "" || severity == "-" {
			severity = untriaged
		}
		counts[severity] += of.Count
	}
	return counts, nil
}

// tell adds a score for each policy and what is vulnerable, as they were when the server answered last.
func (w *wazuh) tell(ctx context.Context, k *look, hostname string, now time.Time) {
	if now.Sub(w.asked) >= wazuhEvery {
		if err := w.ask(ctx, hostname); err != nil {
			k.failed("wazuh", err)
		} else {
			w.asked = now
		}
	}
	scanned := labels{"agent_hostname": hostname, "agent_ip": address(), "agent_name": w.agent(hostname)}
	with := func(more labels) labels {
		maps.Copy(more, scanned)
		return more
	}
	for _, s := range w.scores {
		if s.Score == nil {
			continue // not assessed yet
		}
		k.add("SCA_score", "Share of the checks that are passed, 0 to 100", *s.Score, with(labels{"method": "wazuh", "policy": s.Policy}))
	}
	for _, severity := range slices.Sorted(maps.Keys(w.vulnerable)) {
		k.add("vulnerabilities", "Vulnerabilities of what is installed", w.vulnerable[severity], with(labels{"severity": severity}))
	}
}
