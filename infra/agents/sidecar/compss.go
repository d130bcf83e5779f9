package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// compss is the REST interface of a COMPSs agent.
type compss struct {
	base string
	http *http.Client
}

// errNoAnswer says that it is not known whether the agent did what it was asked.
var errNoAnswer = errors.New("the agent did not answer")

// unknownWorker is how the agent answers 500 when it is to remove a worker that it does not have.
const unknownWorker = "was not set up for this agent"

// adaptor is that of workers which are agents themselves.
const (
	adaptor    = "es.bsc.compss.agent.comm.CommAgentAdaptor"
	unassigned = "[unassigned]"
)

// most is how much of an answer is read.
const most = 4 << 20

// resources returns the cores of the agent's workers and of itself, by name.
func (c compss) resources(ctx context.Context) (map[string]int64, error) {
	text, err := c.call(ctx, http.MethodGet, "/resources/", nil)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Resources []struct {
			Name        string `json:"name"`
			Description struct {
				Processors []struct {
					Units int64 `json:"units"`
				} `json:"processors"`
			} `json:"description"`
		} `json:"resources"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, fmt.Errorf("resources of the agent: %w", err)
	}
	if answer.Resources == nil { // not even itself: this is no list
		return nil, errors.New("the agent did not list its resources")
	}
	all := map[string]int64{}
	for _, r := range answer.Resources {
		for _, p := range r.Description.Processors {
			all[r.Name] += max(p.Units, 0)
		}
	}
	return all, nil
}

type description struct {
	Processors []processor `xml:"processors>processor"`
	Memory     float64     `xml:"memorySize"`
	MemoryType string      `xml:"memoryType"`
	Storage    float64     `xml:"storageSize"`
}

type processor struct {
	Name         string `xml:"name"`
	Type         string `xml:"type"`
	Architecture string `xml:"architecture"`
	Units        int64  `xml:"computingUnits"` // in the answer it is "units"
}

func describe(cores int64, memory float64) description {
	return description{
		Processors: []processor{{"Main", "CPU", unassigned, cores}}, Memory: memory, MemoryType: unassigned, Storage: -1,
	}
}

type newResource struct {
	XMLName  xml.Name `xml:"newResource"`
	External struct {
		Name        string      `xml:"name"`
		Description description `xml:"description"`
		Adaptor     string      `xml:"adaptor"`
		Conf        []property  `xml:"resourceConf>Property"`
	} `xml:"externalResource"`
}

type property struct {
	Name  string `xml:"Name"`
	Value string `xml:"Value"`
}

// add gives the agent a worker, or adds to what it has of one.
func (c compss) add(ctx context.Context, name string, w worker) error {
	var n newResource
	n.External.Name, n.External.Adaptor = name, adaptor
	n.External.Description = describe(w.Cores, w.Memory)
	n.External.Conf = []property{{"Port", fmt.Sprint(w.Port)}}
	return c.put(ctx, "/addResources/", n)
}

// The agent reads workerName, though its own description calls the field name.
type reduceNode struct {
	XMLName   xml.Name    `xml:"reduceNode"`
	Name      string      `xml:"workerName"`
	Resources description `xml:"resources"`
}

func (c compss) reduce(ctx context.Context, name string, cores int64) error {
	return c.put(ctx, "/removeResources/", reduceNode{Name: name, Resources: describe(cores, -1)})
}

type removeNode struct {
	XMLName xml.Name `xml:"removeNode"`
	Name    string   `xml:"workerName"`
}

// remove takes a worker from the agent once its tasks have ended.
func (c compss) remove(ctx context.Context, name string) error {
	return c.put(ctx, "/removeNode/", removeNode{Name: name})
}

type lostNode struct {
	XMLName xml.Name `xml:"lostNode"`
	Name    string   `xml:"workerName"`
}

// lose tells the agent that a worker is gone with its tasks.
func (c compss) lose(ctx context.Context, name string) error {
	return c.put(ctx, "/lostNode/", lostNode{Name: name})
}

func (c compss) put(ctx context.Context, path string, body any) error {
	text, err := xml.Marshal(body)
	if err != nil {
		return err
	}
	_, err = c.call(ctx, http.MethodPut, path, text)
	return err
}

func (c compss) call(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.base, "/")+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/xml")
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, most))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errNoAnswer, err)
	case answer.StatusCode == http.StatusInternalServerError && strings.Contains(string(text), unknownWorker):
		return nil, nil // it is gone, as it should be
	case answer.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the agent answered %s to %s: %.200s", answer.Status, path, text)
	}
	return text, nil
}
