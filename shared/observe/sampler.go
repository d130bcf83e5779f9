package observe

import (
	"context"
	"strconv"
	"strings"

	"github.com/littoral-project/littoral/shared/trace"
)

// sampler decides which traces are kept.
type sampler struct {
	asParent bool    // follow the decision of the caller, if there is one
	ratio    float64 // of traces without a decision, 0..1
}

// sampler reads OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG.
func (e *environment) sampler() sampler {
	name := e.oneOf("OTEL_TRACES_SAMPLER", "parentbased_always_on", "always_on", "always_off", "traceidratio",
		"parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio")
	rule, asParent := strings.CutPrefix(name, "parentbased_")
	s := sampler{asParent: asParent, ratio: 1}
	switch rule {
	case "always_off":
		s.ratio = 0
	case "traceidratio":
		const arg = "OTEL_TRACES_SAMPLER_ARG"
		text := e.getenv(arg)
		ratio, err := strconv.ParseFloat(text, 64)
		if text != "" && (err != nil || !(ratio >= 0 && ratio <= 1)) {
			e.fault(arg, "%q is not a number from 0 to 1", text)
		} else if text != "" {
			s.ratio = ratio
		}
	}
	return s
}

// decide returns ctx with the trace sampled or not. The ratio is applied to the trace id, so every function decides
// alike.
func (s sampler) decide(ctx context.Context) context.Context {
	switch {
	case s.asParent && trace.Above(ctx) != "":
		return ctx
	case s.ratio >= 1:
		return trace.WithSampled(ctx, true)
	}
	id := trace.ID(ctx)
	if len(id) != 32 {
		return ctx
	}
	// The last seven bytes of an id are random, in the next version of the standard too.
	n, err := strconv.ParseUint(id[18:], 16, 64)
	return trace.WithSampled(ctx, err == nil && float64(n) < s.ratio*(1<<56))
}
