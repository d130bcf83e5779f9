// Package compss is a double of the REST interface of a COMPSs agent, made from the contract with its traps. COMPSs itself is
// Java and was not run: nothing here says how a real agent behaves beyond what the contract says of it.
package compss

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Self is how the agent calls itself among its resources.
const Self = "agent.local"

// Agent is the double.
type Agent struct {
	URL string

	mu      sync.Mutex
	workers map[string]int64 // cores by name
	calls   []string
	failing int // so many of the next calls that change something are answered 500
	lost    int // so many of the next calls that change something are carried out, and their answer is lost
}

// Start starts an agent that ends with the test.
func Start(t testing.TB) *Agent {
	a := &Agent{workers: map[string]int64{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /COMPSs/test/", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /COMPSs/resources/", a.resources)
	mux.HandleFunc("PUT /COMPSs/addResources/", a.change("add", func(b body) error {
		if b.External.Name == "" {
			return fmt.Errorf("a resource has no name")
		}
		a.workers[b.External.Name] += b.External.Description.cores() // what is there already is added to
		return nil
	}))
	mux.HandleFunc("PUT /COMPSs/removeResources/", a.change("reduce", func(b body) error {
		return a.known(b.Worker, func() { a.workers[b.Worker] -= b.Resources.cores() })
	}))
	mux.HandleFunc("PUT /COMPSs/removeNode/", a.change("remove", func(b body) error {
		return a.known(b.Worker, func() { delete(a.workers, b.Worker) })
	}))
	mux.HandleFunc("PUT /COMPSs/lostNode/", a.change("lose", func(b body) error {
		return a.known(b.Worker, func() { delete(a.workers, b.Worker) })
	}))
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	a.URL = s.URL + "/COMPSs"
	return a
}

// body is that of every call that changes something. A worker is named by workerName, whatever the published description says.
type body struct {
	External struct {
		Name        string      `xml:"name"`
		Description description `xml:"description"`
		Adaptor     string      `xml:"adaptor"`
	} `xml:"externalResource"`
	Worker    string      `xml:"workerName"`
	Resources description `xml:"resources"`
}

type description struct {
	Processors []struct {
		Units int64 `xml:"computingUnits"`
	} `xml:"processors>processor"`
}

func (d description) cores() (sum int64) {
	for _, p := range d.Processors {
		sum += p.Units
	}
	return sum
}

func (a *Agent) known(worker string, do func()) error {
	if _, is := a.workers[worker]; !is {
		return fmt.Errorf("Resource %s was not set up for this agent. Ignoring request.", worker)
	}
	do()
	return nil
}

func (a *Agent) change(what string, do func(body) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		var b body
		if err == nil {
			err = xml.Unmarshal(text, &b)
		}
		if err != nil || r.Header.Get("Content-Type") != "application/xml" {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		name := b.Worker + b.External.Name
		a.calls = append(a.calls, what+" "+name)
		if a.failing > 0 {
			a.failing--
			http.Error(w, "java.lang.NullPointerException", http.StatusInternalServerError)
			return
		}
		err = do(b)
		switch {
		case a.lost > 0:
			a.lost--
			panic(http.ErrAbortHandler)
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}
}

// resources answers JSON as text. What is not set is negative.
func (a *Agent) resources(w http.ResponseWriter, _ *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	type processor struct {
		Name         string `json:"name"`
		Architecture string `json:"architecture"`
		Units        int64  `json:"units"`
	}
	list := []any{}
	add := func(name string, cores int64) {
		list = append(list, map[string]any{
			"name": name, "adaptor": "es.bsc.compss.agent.comm.CommAgentAdaptor",
			"description": map[string]any{
				"processors": []processor{{"Main", "[unassigned]", cores}}, "memory_size": -1, "storage_size": -1,
			},
		})
	}
	add(Self, 2)
	for name, cores := range a.workers {
		add(name, cores)
	}
	w.Header().Set("Content-Type", "text/plain")
	_ = json.NewEncoder(w).Encode(map[string]any{"time": 1, "resources": list})
}

// Workers returns the cores of the workers by name.
func (a *Agent) Workers() map[string]int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := map[string]int64{}
	for name, cores := range a.workers {
		all[name] = cores
	}
	return all
}

// Give gives it a worker by other hands.
func (a *Agent) Give(name string, cores int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.workers[name] = cores
}

// Restart forgets all workers.
func (a *Agent) Restart() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.workers = map[string]int64{}
}

// Fail answers 500 to the next n changes without doing them.
func (a *Agent) Fail(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failing = n
}

// Lose carries out the next n changes and breaks off their answers.
func (a *Agent) Lose(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lost = n
}

// Calls returns the changes that were asked for since the last call of Calls.
func (a *Agent) Calls() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	calls := a.calls
	a.calls = nil
	return calls
}
