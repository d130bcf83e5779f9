package storetest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/store"
)

// EnvStatements names a folder in which the statements of each function are kept, so that scripts/gen/grants can tell what a function
// may do: a file for each, with a statement on each line, as a JSON string. What is there stays; many processes may add to it.
const EnvStatements = "LITTORAL_TEST_STATEMENTS"

type functionKey struct{}

// As returns ctx in which statements are those of the function, for what its process does beside its calls.
func As(ctx context.Context, function string) context.Context {
	return context.WithValue(store.WithSource(ctx, functionSource+function), functionKey{}, function)
}

const (
	functionSource = "/functions/"
	packages       = "github.com/littoral-project/littoral/functions/"
	handling       = "github.com/littoral-project/littoral/shared/function."
)

// functionOf returns whose statement is being run: the function whose code is on the stack, since some tests call that directly, else
// the one of the context. "" is what a test does itself.
func functionOf(ctx context.Context) string {
	if name, ok := ctx.Value(functionKey{}).(string); ok {
		return name
	}
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	tested, handled := false, false
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		within, ours := strings.CutPrefix(f.Function, packages)
		switch component, rest, _ := strings.Cut(within, "/"); {
		case strings.HasSuffix(f.File, "_test.go"):
			tested = true
		case ours && strings.Contains(rest, "."):
			operation, _, _ := strings.Cut(rest, ".")
			return component + "-" + operation
		case strings.HasPrefix(f.Function, handling):
			handled = true
		}
	}
	if tested && !handled {
		return ""
	}
	name, ok := strings.CutPrefix(store.Source(ctx), functionSource)
	if !ok {
		return ""
	}
	return name
}

// statements keeps the statements of functions, if EnvStatements is set.
type statements struct {
	dir string

	mu   sync.Mutex
	seen map[string]map[string]bool // by function
}

var kept = &statements{dir: os.Getenv(EnvStatements), seen: map[string]map[string]bool{}}

func (s *statements) note(ctx context.Context, sql string) {
	if s.dir == "" {
		return
	}
	function := functionOf(ctx)
	if function == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen[function] == nil {
		seen, err := ReadStatements(s.dir, function)
		if err != nil {
			log.Fatal(err)
		}
		s.seen[function] = map[string]bool{}
		for _, sql := range seen {
			s.seen[function][sql] = true
		}
	}
	if s.seen[function][sql] {
		return
	}
	s.seen[function][sql] = true
	if err := s.add(function, sql); err != nil {
		log.Fatal(err) // a run that lacks statements would take rights away
	}
}

// add writes a line at once, so that those of several processes do not mix.
func (s *statements) add(function, sql string) error {
	line, err := json.Marshal(sql)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(statementsFile(s.dir, function), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := file.Write(append(line, '\n')); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}

func statementsFile(dir, function string) string { return filepath.Join(dir, function+".jsonl") }

// ReadStatements returns the statements of a function that are kept in the folder; some may be there twice.
func ReadStatements(dir, function string) ([]string, error) {
	file, err := os.Open(statementsFile(dir, function))
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	var all []string
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var sql string
		if err := json.Unmarshal(lines.Bytes(), &sql); err != nil {
			return nil, fmt.Errorf("%s: %w", file.Name(), err)
		}
		all = append(all, sql)
	}
	return all, lines.Err()
}

// tracer is told of every statement of the tests.
type tracer struct{ locks *lockWatch }

// Tracer is for a store that something else than this package opens.
func Tracer() pgx.QueryTracer { return tracer{watch} }

// TraceQueryStart implements pgx.QueryTracer.
func (t tracer) TraceQueryStart(ctx context.Context, conn *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	kept.note(ctx, d.SQL)
	return t.locks.TraceQueryStart(ctx, conn, d)
}

// TraceQueryEnd implements pgx.QueryTracer.
func (t tracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart implements pgx.BatchTracer. Statements are noted here, while the stack is that of who sends them.
func (t tracer) TraceBatchStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	for _, q := range d.Batch.QueuedQueries {
		kept.note(ctx, q.SQL)
	}
	return ctx
}

// TraceBatchQuery implements pgx.BatchTracer.
func (t tracer) TraceBatchQuery(ctx context.Context, conn *pgx.Conn, d pgx.TraceBatchQueryData) {
	t.locks.TraceBatchQuery(ctx, conn, d)
}

// TraceBatchEnd implements pgx.BatchTracer.
func (t tracer) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}
