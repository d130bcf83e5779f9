package main

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/littoral-project/littoral/functions"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
)

// hops is how far ahead functions are woken. The longest chain that somebody waits for is from an alert to the
// deployment: judge, act, deploy.
const hops = 4

// prewake is the setting with the functions that an operation's events will need. Reactions and scheduled tasks wake no
// functions: the operation before them has done so, or nobody waits.
func prewake(entry function.Entry) []corev1.EnvVar {
	if len(entry.Spec.Routes) == 0 {
		return nil
	}
	var parts []string
	for _, typ := range entry.Spec.Emits {
		if names := chain(functions.Registry, typ, hops); len(names) > 0 {
			parts = append(parts, typ+"="+strings.Join(names, ","))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return []corev1.EnvVar{{Name: "PREWAKE_CHAIN", Value: strings.Join(parts, ";")}}
}

// ahead is the entry in the gateway's table for an operation: the functions that its calls nearly always need.
func ahead(entry function.Entry) string {
	var names []string
	for _, typ := range entry.Spec.Foreseen {
		for _, name := range chain(functions.Registry, typ, hops) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " > " + strings.Join(names, ",")
}

// chain lists the functions that an event of the type leads to within so many hops, according to their declarations:
// nearest first, each once. If a function declares where its chain ends, only that branch is followed. Functions that
// accept events of any type, or that are declared Aside, are not part of a chain: a node must first start what somebody waits
// for.
func chain(registry map[string]function.Entry, typ string, hops int) []string {
	entries := make([]function.Entry, 0, len(registry))
	for _, entry := range registry {
		entries = append(entries, entry)
	}
	slices.SortFunc(entries, func(a, b function.Entry) int { return strings.Compare(a.Name, b.Name) })
	var names []string
	types := []string{typ}
	for range hops {
		var next []string
		for _, entry := range entries {
			takes := !entry.Spec.Aside && slices.ContainsFunc(entry.Spec.Consumes, func(t string) bool {
				return t != events.Any && slices.Contains(types, t)
			})
			if takes && !slices.Contains(names, entry.Name) {
				names = append(names, entry.Name)
				if len(entry.Spec.Foreseen) > 0 {
					next = append(next, entry.Spec.Foreseen...)
				} else {
					next = append(next, entry.Spec.Emits...)
				}
			}
		}
		types = next
	}
	return names
}
