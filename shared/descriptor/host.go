package descriptor

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/littoral-project/littoral/shared/compose/variables"
	"github.com/littoral-project/littoral/shared/problem"
)

// checkCompose refuses what a compose file needs from the machine where it was written: a descriptor travels alone. What
// it would get of the machine that it runs on is collected in HostAccess, for whoever decides about that.
func (r *reader) checkCompose() {
	seen := map[*definition]bool{}
	for _, p := range r.index.plans {
		for _, m := range p {
			if m.def == nil || m.def.kind != "" || seen[m.def] {
				continue
			}
			seen[m.def] = true
			r.checkVariables(m.def.node, m.def.path, r.givenTo(p))
			r.checkTravels(m.def.node, m.def.path, "include")
			visitServices(m.def, r.checkService)
			for _, section := range []string{"configs", "secrets"} {
				each(field(m.def.node, section), join(m.def.path, section), func(_ string, n *yaml.Node, path string) {
					r.checkTravels(n, path, "file")
				})
			}
		}
	}
}

// each calls f with each entry of an object.
func each(n *yaml.Node, path string, f func(key string, n *yaml.Node, path string)) {
	for i := 0; n != nil && n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		f(n.Content[i].Value, n.Content[i+1], join(path, shorten(n.Content[i].Value)))
	}
}

// checkTravels refuses a key that names a file beside the compose file.
func (r *reader) checkTravels(n *yaml.Node, path string, keys ...string) {
	for _, key := range keys {
		if v := field(n, key); v != nil && !isNull(v) {
			r.complain(join(path, key), v, "names a file, and a descriptor travels without any: write its content here")
		}
	}
}

// ours is the part of a compose file that only Littoral reads.
const ours = "x-littoral"

// givenTo returns the values that the compose files of a component give to variables, under x-littoral.
func (r *reader) givenTo(p plan) map[string]string {
	given := map[string]string{}
	for _, m := range p {
		if m.def == nil || m.def.kind != "" {
			continue
		}
		each(field(field(m.def.node, ours), "variables"), "", func(name string, n *yaml.Node, _ string) {
			if n.Kind == yaml.ScalarNode && !isNull(n) {
				given[name] = n.Value
			}
		})
	}
	return given
}

// valued puts the values that are given into a text.
func valued(text string, given map[string]string) (out string, missing []string, err error) {
	return variables.Put(text, func(name string) (string, bool) { v, ok := given[name]; return v, ok })
}

// checkVariables refuses a variable that has no value, neither given nor of its own. Two dollars are one that is meant so.
func (r *reader) checkVariables(n *yaml.Node, path string, given map[string]string) {
	switch n.Kind {
	case yaml.MappingNode:
		each(n, path, func(_ string, n *yaml.Node, path string) { r.checkVariables(n, path, given) })
	case yaml.SequenceNode:
		for i, c := range n.Content {
			r.checkVariables(c, at(path, i), given)
		}
	case yaml.ScalarNode:
		switch _, missing, err := valued(n.Value, given); {
		case len(missing) > 0:
			name := shorten(missing[0])
			r.complain(path, n, "the variable %q has no value: write it as ${%s:-default}, give it one in %s.variables, or write "+
				"$$ for a dollar", name, name, ours)
		case err != nil:
			r.complain(path, n, "%s: write $$ for a dollar", shorten(err.Error()))
		}
	}
}

// checkService looks at one service of a compose file.
func (r *reader) checkService(service *yaml.Node, path string) {
	if service.Kind != yaml.MappingNode {
		r.complain(path, service, "must be an object, not %s", kindOf(service))
		return
	}
	if v := field(service, "build"); v != nil && !isNull(v) {
		r.complain(join(path, "build"), v, "cannot be built where it runs, since a descriptor travels without files: name an image")
	}
	r.checkTravels(service, path, "env_file", "label_file")
	r.checkTravels(field(service, "extends"), join(path, "extends"), "file")
	each(service, path, func(key string, v *yaml.Node, path string) {
		switch {
		case !serviceKeys[key] && !strings.HasPrefix(key, "x-"):
			r.warn(path, v, "is no key of a service that compose has, and may be refused where it runs")
		case key == "privileged" && !strings.EqualFold(v.Value, "false"), key == "cap_add", key == "security_opt":
			r.host(path, v, "takes rights beyond those of a container")
		case hostModes[key] && v.Value == "host":
			r.host(path, v, "shares the host's own")
		case key == "volumes" && v.Kind == yaml.SequenceNode:
			for i, mount := range v.Content {
				if source := bindSource(mount); source != "" {
					r.host(at(path, i), mount, "mounts "+shorten(source)+" of the host")
				}
			}
		}
	})
}

var hostModes = map[string]bool{"network_mode": true, "pid": true, "ipc": true, "userns_mode": true, "uts": true, "cgroup": true}

func (r *reader) host(path string, n *yaml.Node, what string) {
	r.app.HostAccess = append(r.app.HostAccess, problem.Field{Path: path, Line: n.Line, Detail: what})
}

// bindSource returns the path of the host that a volume of a service mounts; "" for a named one.
func bindSource(n *yaml.Node) string {
	source := ""
	switch n.Kind {
	case yaml.ScalarNode:
		source, _, _ = strings.Cut(n.Value, ":")
		if source == n.Value { // a path in the container alone is an anonymous volume
			return ""
		}
	case yaml.MappingNode:
		if source = scalar(n, "source"); scalar(n, "type") == "bind" && source != "" {
			return source
		}
	}
	if strings.HasPrefix(source, "/") || strings.HasPrefix(source, ".") || strings.HasPrefix(source, "~") {
		return source
	}
	return ""
}

// serviceKeys are the keys of a service in the Compose specification.
var serviceKeys = func() map[string]bool {
	keys := map[string]bool{}
	for key := range slices.Values(strings.Fields(`annotations attach blkio_config build cap_add cap_drop cgroup
cgroup_parent command configs container_name cpu_count cpu_percent cpu_period cpu_quota cpu_rt_period cpu_rt_runtime
cpu_shares cpus cpuset credential_spec depends_on deploy develop device_cgroup_rules devices dns dns_opt dns_search
domainname entrypoint env_file environment expose extends external_links extra_hosts gpus group_add healthcheck
hostname image init ipc isolation label_file labels links logging mac_address mem_limit mem_reservation mem_swappiness
memswap_limit models network_mode networks oom_kill_disable oom_score_adj pid pids_limit platform ports post_start
pre_stop privileged profiles provider pull_policy read_only restart runtime scale secrets security_opt shm_size
stdin_open stop_grace_period stop_signal storage_opt sysctls tmpfs tty ulimits use_api_socket user userns_mode uts
volumes volumes_from working_dir`)) {
		keys[key] = true
	}
	return keys
}()
