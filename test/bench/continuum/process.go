package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/loopback"
	"github.com/littoral-project/littoral/test/images"
)

// apart are the functions that grow with the continuum, which run as processes.
var apart = map[string]bool{
	"aggregator-taxonomy": true, "aggregator-tick": true, "matchmaker-matchmake": true, "matchmaker-plan": true,
	"matchmaker-explain": true, "matchmaker-place": true,
}

// process is one function as on a cluster: its own program, with GOMEMLIMIT at nine tenths of its memory.
type process struct {
	name  string
	url   string
	limit float64 // MiB
	cmd   *exec.Cmd
	log   *bytes.Buffer
}

func (c *continuum) start(ctx context.Context, name string) (*process, error) {
	address, err := loopback.Free(ctx)
	if err != nil {
		return nil, err
	}
	p := &process{name: name, url: "http://" + address.String(), log: &bytes.Buffer{}, limit: limitOf(name)}
	p.cmd = exec.CommandContext(ctx, c.world.programs[name])
	p.cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "DATABASE_URL=" + c.database, "K_SINK=" + c.world.sink,
		"OIDC_ISSUER=" + c.world.oidc, "OIDC_AUDIENCE=" + audience, fmt.Sprintf("PORT=%d", address.Port()),
		fmt.Sprintf("GOMEMLIMIT=%d", int64(p.limit*0.9*(1<<20))),
	}
	for key, value := range c.settings() {
		p.cmd.Env = append(p.cmd.Env, key+"="+value)
	}
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, err = c.world.ask(ctx, http.MethodGet, p.url+function.ReadyPath, "", nil, nil); err == nil {
			return p, nil
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			p.stop()
			return nil, fmt.Errorf("%s: %w\n%s", name, err, p.log)
		}
	}
}

func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	_ = p.cmd.Wait() // it was killed
}

// limitOf is the memory that the function may have, in MiB.
func limitOf(name string) float64 {
	limit := resource.MustParse(images.Limits(name).Memory)
	return float64(limit.Value()) / (1 << 20)
}

// peak is the most memory that the process has had, in MiB.
func (p *process) peak() float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(text), "VmHWM:")
	var kib float64
	if _, err := fmt.Sscan(after, &kib); err != nil {
		return 0
	}
	return kib / 1024
}

// memory adds the most memory that the process has had, and what it declares.
func (p *process) memory(m *size) {
	m.add(fmt.Sprintf("%s, most memory of %.0f", p.name, p.limit), "MiB", p.peak())
}

// busy is the processor time of the process so far, in milliseconds (a clock tick of Linux is 10).
func (p *process) busy() float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(after)
	var user, system float64
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		return 0
	}
	return (user + system) * 10
}

// deliver hands the process an event, as the Broker does.
func (p *process) deliver(ctx context.Context, w *world, typ string, data any) error {
	e := cloudevents.New()
	e.SetID(uuid.NewString())
	e.SetSource("/bench")
	e.SetType(typ)
	e.SetTime(time.Now().UTC())
	if data != nil {
		if err := e.SetData(cloudevents.ApplicationJSON, data); err != nil {
			return err
		}
	}
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = w.ask(ctx, http.MethodPost, p.url+"/", "", body, map[string]string{
		"Content-Type": cloudevents.ApplicationCloudEventsJSON,
	})
	if err != nil {
		time.Sleep(100 * time.Millisecond) // until it has logged why
		return fmt.Errorf("%s: %w\n%s", p.name, err, p.log)
	}
	return nil
}

// median measures a call several times, in milliseconds.
func median(times int, call func() error) (float64, error) {
	var all []float64
	for range times {
		begin := time.Now()
		if err := call(); err != nil {
			return 0, err
		}
		all = append(all, float64(time.Since(begin))/float64(time.Millisecond))
	}
	slices.Sort(all)
	return all[len(all)/2], nil
}
