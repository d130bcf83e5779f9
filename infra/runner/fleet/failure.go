package fleet

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/problem"
)

// failure is how the pods of a component fail, so that people can see what becomes of a rollout that goes wrong.
type failure string

const (
	crash     failure = "crash"      // its containers end as soon as they have begun
	pullError failure = "pull-error" // what is rolled out from then on waits for its image in vain
	slow      failure = "slow"       // what is rolled out from then on is ready after slowStart only

	healthy = "ok" // ends a failure, as an empty value does
)

// slowStart is how long the pods of a slow component take.
const slowStart = time.Minute

// failing is what was set for a component.
type failing struct {
	How   failure   `json:"how"`
	Since time.Time `json:"since"`
}

const componentPrefix = "app:"

// isComponent reports whether a setting is about a component and not about a node.
func isComponent(key string) bool { return strings.HasPrefix(key, componentPrefix) }

// SetComponents makes the rollouts of components fail, or lets them succeed again: all settings are made or, with an error
// that names each fault, none. A key is app:COMPONENT, or app:APPLICATION/COMPONENT where other applications have one of
// that name, which need not run yet. Values are
//
//	crash        its containers end as soon as they have begun, also those that run already
//	pull-error   the image of what is rolled out from now on cannot be had
//	slow         what is rolled out from now on takes a minute until it is ready
//	ok           all is well again; an empty value says the same
func (f *Fleet) SetComponents(values map[string]string) error {
	var faults problem.Faults
	for key, value := range values {
		name := strings.TrimPrefix(key, componentPrefix)
		switch {
		case !isComponent(key):
			faults.Add("set."+key, 0, "is about a node, which is not named")
		case name == "" || len(name) > maxLabel || hasControl(name):
			faults.Add("set."+key, 0, "names no component; the form is %sCOMPONENT or %sAPPLICATION/COMPONENT", componentPrefix, componentPrefix)
		case !slices.Contains([]string{string(crash), string(pullError), string(slow), healthy, ""}, value):
			faults.Add("set."+key, 0, "%q is not one of %s, %s, %s, %s", value, crash, pullError, slow, healthy)
		}
	}
	if err := faults.Err("the settings are not valid"); err != nil {
		return err
	}
	f.log.Info("fleet changed", "set", values)
	return f.change(func() {
		for key, value := range values {
			name := strings.TrimPrefix(key, componentPrefix)
			delete(f.state.Failing, name)
			if value != healthy && value != "" {
				f.state.Failing[name] = failing{failure(value), f.options.Now()}
			}
		}
	})
}

// failureOf returns how the copy fails at that time, "" when it does not, and when that ends by itself.
func (s *state) failureOf(c *Copy, now time.Time) (how failure, until time.Time) {
	set, known := s.Failing[c.Application+"/"+c.Component]
	if !known {
		set = s.Failing[c.Component]
	}
	fresh := !c.Changed.Before(set.Since)
	switch set.How {
	case crash:
		return crash, time.Time{}
	case pullError:
		if fresh {
			return pullError, time.Time{}
		}
	case slow:
		if until = c.Changed.Add(slowStart); fresh && now.Before(until) {
			return slow, until
		}
	}
	return "", time.Time{}
}

// verdict is the condition of a copy that fails so.
func (how failure) verdict(want int, node string) verdict {
	none := fmt.Sprintf("0 of %d pods run on %s: ", want, node)
	switch how {
	case crash:
		return verdict{false, "CrashLoopBackOff", none + "their containers end as soon as they have begun"}
	case pullError:
		return verdict{false, "ImagePullBackOff", none + "their image cannot be pulled"}
	default:
		return verdict{false, reasonStarting, none + "they are not ready yet"}
	}
}

// reasonStarting is the reason of a copy that its agent goes on waiting for.
const reasonStarting = "ContainersNotReady"
