package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// wazuh is the API of a Wazuh server, which has the results of the assessments that its agent on this host made. nil = there is none.
type wazuh struct {
	client                        *http.Client
	url, user, passwordFile, name string

	asked  time.Time
	scores []wazuhScore
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
	if o.WazuhURL == "" {
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
	return &wazuh{client: client, url: strings.TrimRight(o.WazuhURL, "/"), user: o.WazuhUser, passwordFile: o.WazuhPassword, name: o.WazuhAgent}, nil
}

// token signs in; it is good for a quarter of an hour, so each time anew.
func (w *wazuh) token(ctx context.Context) (string, error) {
	password, err := os.ReadFile(w.passwordFile)
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+"/security/user/authenticate", http.NoBody)
	if err != nil {
		return "", err
	}
	req.SetBasicAuth(w.user, strings.TrimSpace(string(password)))
	resp, err := w.client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("sign in: %s", resp.Status)
	}
	var answer struct{ Data struct{ Token string } }
	err = json.NewDecoder(io.LimitReader(resp.Body, mostAnswer)).Decode(&answer)
	return answer.Data.Token, err
}

// ask returns the scores of the policies that the agent of that name was assessed by.
func (w *wazuh) ask(ctx context.Context, hostname string) ([]wazuhScore, error) {
	token, err := w.token(ctx)
	if err != nil {
		return nil, err
	}
	name := w.name
	if name == "" {
		name = hostname
	}
	var agents struct {
		Data struct {
			Items []struct{ ID, Name string } `json:"affected_items"`
		}
	}
	if err := getJSON(ctx, w.client, w.url+"/agents?select=id,name&name="+url.QueryEscape(name), token, &agents); err != nil {
		return nil, err
	}
	id := ""
	for _, a := range agents.Data.Items {
		if a.Name == name {
			id = a.ID
		}
	}
	if id == "" {
		return nil, fmt.Errorf("there is no agent %q", name)
	}
	var found struct {
		Data struct {
			Items []wazuhScore `json:"affected_items"`
		}
	}
	err = getJSON(ctx, w.client, w.url+"/sca/"+url.PathEscape(id), token, &found)
	return found.Data.Items, err
}

// tell adds a score for each policy, as they were when the server answered last.
func (w *wazuh) tell(ctx context.Context, k *look, hostname string, now time.Time) {
	if now.Sub(w.asked) >= wazuhEvery {
		scores, err := w.ask(ctx, hostname)
		if err != nil {
			k.failed("wazuh", err)
		} else {
			w.scores, w.asked = scores, now
		}
	}
	for _, s := range w.scores {
		if s.Score == nil {
			continue // not assessed yet
		}
		k.add("SCA_score", "Share of the checks that are passed, 0 to 100", *s.Score, labels{
			"agent_hostname": hostname, "agent_ip": address(), "agent_name": hostname, "method": "wazuh", "policy": s.Policy,
		})
	}
}
