package nuvla

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

var subtypes = []string{"project", "component", "application", "application_kubernetes", "application_helm", "applications_sets"}

// newModule makes a module under a project that exists.
func (s *Server) newModule(body map[string]any) (string, error) {
	m := resource(body)
	path := m.text("path")
	parts := strings.Split(path, "/")
	for _, part := range parts {
		if !segment.MatchString(part) {
			return "", no(http.StatusBadRequest, "resource does not satisfy defined schema: path %q", path)
		}
	}
	parent := strings.Join(parts[:len(parts)-1], "/")
	switch {
	case !slices.Contains(subtypes, m.text("subtype")):
		return "", no(http.StatusBadRequest, "resource does not satisfy defined schema: subtype %q", m.text("subtype"))
	case s.module(path) != nil:
		return "", no(http.StatusConflict, "path '%s' already exist", path)
	case parent != "" && (s.module(parent) == nil || s.module(parent).text("subtype") != "project"):
		return "", no(http.StatusBadRequest, "No parent project found for path: %s", path)
	}
	m["parent-path"] = parent
	delete(m, "versions")
	delete(m, "_contents")
	content, _ := m["content"].(map[string]any)
	if m.text("subtype") != "project" {
		if err := checkContent(content); err != nil {
			return "", err
		}
		addVersion(m, content)
	}
	return s.put("module", m), nil
}

func checkContent(content map[string]any) error {
	if text, _ := content["docker-compose"].(string); text == "" || content["author"] == nil {
		return no(http.StatusBadRequest, "resource does not satisfy defined schema: content")
	}
	return nil
}

// addVersion appends a version; its content is kept beside, as the server keeps it in a resource of its own.
func addVersion(m resource, content map[string]any) {
	versions, _ := m["versions"].([]any)
	contents, _ := m["_contents"].([]any)
	m["versions"] = append(versions, map[string]any{
		"href": "module-application/" + strconv.Itoa(len(versions)), "author": content["author"], "commit": content["commit"],
	})
	m["_contents"] = append(contents, content)
	m["content"], m["compatibility"], m["valid"] = content, "docker-compose", true
}

func (s *Server) module(path string) resource {
	for _, r := range s.resources {
		if strings.HasPrefix(r.text("id"), "module/") && r.text("path") == path {
			return r
		}
	}
	return nil
}

// version returns a module as of its nth version.
func (s *Server) version(id, n string) resource {
	m := s.resources[id]
	contents, _ := m["_contents"].([]any)
	if i, err := strconv.Atoi(n); err == nil && i < len(contents) {
		out := clone(m)
		out["content"], out["id"] = contents[i], id+"_"+n
		return out
	}
	return nil
}

// resolve returns the module that an href means, for a deployment, with its content copied.
func (s *Server) resolve(href string) (map[string]any, error) {
	m := s.resources[href]
	if v := versioned.FindStringSubmatch(href); m == nil && v != nil {
		m = s.version(v[1], v[2])
	} else if m != nil {
		versions, _ := m["versions"].([]any)
		href += "_" + strconv.Itoa(len(versions)-1)
	}
	if m == nil || m.text("subtype") == "project" {
		return nil, no(http.StatusNotFound, "%s not found", href)
	}
	out := clone(m)
	delete(out, "_contents")
	delete(out, "versions")
	out["href"] = href
	return out, nil
}

func (s *Server) newDeployment(body map[string]any) (string, error) {
	asked, _ := body["module"].(map[string]any)
	href, _ := asked["href"].(string)
	module, err := s.resolve(href)
	if err != nil {
		return "", err
	}
	d := resource{"module": module, "state": "CREATED", "owner": "user/littoral"}
	if mode, ok := body["execution-mode"]; ok {
		d["execution-mode"] = mode
	}
	if parent, ok := body["parent"].(string); ok {
		if err := s.choose(d, parent); err != nil {
			return "", err
		}
	}
	return s.put("deployment", d), nil
}

// choose sets where a deployment runs.
func (s *Server) choose(d resource, credential string) error {
	c := s.resources[credential]
	if c == nil {
		return no(http.StatusNotFound, "%s not found", credential)
	}
	service := s.resources[c.text("parent")]
	d["parent"], d["credential-name"] = credential, c["name"]
	d["infrastructure-service"], d["infrastructure-service-name"] = service["id"], service["name"]
	for id, e := range s.edges {
		if e.group == service.text("parent") {
			d["nuvlabox"], d["nuvlabox-name"] = id, s.resources[id]["name"]
			if d["execution-mode"] == nil {
				d["execution-mode"] = "pull"
			}
		}
	}
	return nil
}

// edit merges the body into a resource. What the server sets is left as it is.
func (s *Server) edit(r resource, body map[string]any, selected string) error {
	deployment, module := strings.HasPrefix(r.text("id"), "deployment/"), strings.HasPrefix(r.text("id"), "module/")
	if strings.HasPrefix(r.text("id"), "job/") && slices.Contains([]string{"SUCCESS", "FAILED", "CANCELED"}, r.text("state")) {
		return no(http.StatusConflict, "edit is not allowed in final state")
	}
	for name, value := range body {
		switch {
		case slices.Contains([]string{"id", "created", "updated", "resource-type", "owner", "versions", "operations", "path", "parent-path"}, name):
		case deployment && name == "state":
		case deployment && name == "parent":
			parent, _ := value.(string)
			if err := s.choose(r, parent); err != nil {
				return err
			}
		case deployment && name == "module":
			asked, _ := value.(map[string]any)
			have, _ := r["module"].(map[string]any)
			if href, _ := asked["href"].(string); href != "" && href != have["href"] {
				next, err := s.resolve(href)
				if err != nil {
					return err
				}
				r["module"] = next
			}
		case module && name == "content":
			content, _ := value.(map[string]any)
			if err := checkContent(content); err != nil {
				return err
			}
			addVersion(r, content)
		case module && name == "subtype" && value != r["subtype"]:
			return no(http.StatusBadRequest, "subtype cannot be changed")
		default:
			r[name] = value
		}
	}
	for _, name := range strings.Split(selected, ",") {
		if _, sent := body[name]; !sent && name != "" {
			delete(r, name)
		}
	}
	r["updated"] = s.now()
	s.resources[strings.Split(r.text("id"), "_")[0]] = clone(r)
	return nil
}

func in(states ...string) func(string) bool {
	return func(state string) bool { return slices.Contains(states, state) }
}

// allowed says in which states of a deployment what may be done.
var allowed = map[string]func(state string) bool{
	"start":        in("CREATED", "STOPPED"),
	"stop":         in("PENDING", "STARTING", "UPDATING", "STARTED", "ERROR"),
	"update":       in("STARTED", "ERROR"),
	"delete":       in("CREATED", "STOPPED"),
	"create-log":   in("STARTED", "UPDATING", "ERROR"),
	"force-delete": func(string) bool { return true },
}

func notIn(action string, r resource) error {
	return no(http.StatusConflict, "Action %s cannot be called on %s in state %s!", action, r.text("id"), r.text("state"))
}

// act calls an action of a deployment.
func (s *Server) act(w http.ResponseWriter, r resource, action string, body map[string]any) (int, any, error) {
	id := r.text("id")
	may, known := allowed[action]
	switch {
	case !strings.HasPrefix(id, "deployment/"), !known, action == "delete":
		return 0, nil, no(http.StatusNotFound, "undefined action for %s: %s", id, action)
	case !may(r.text("state")):
		return 0, nil, notIn(action, r)
	case action == "force-delete":
		s.remove(id)
		return http.StatusOK, map[string]any{"status": 200, "message": id + " deleted", "resource-id": id}, nil
	case action != "stop" && r.text("parent") == "":
		return 0, nil, no(http.StatusBadRequest, "No parent credential for %s", id)
	}
	next := map[string]string{"start": "STARTING", "stop": "STOPPING", "update": "UPDATING", "create-log": r.text("state")}[action]
	if action == "start" && r.text("execution-mode") == "pull" {
		next = "PENDING"
	}
	if action == "start" && r.text("state") == "STOPPED" {
		s.forget(id)
	}
	r["state"], r["updated"] = next, s.now()
	job := s.put("job", resource{
		"action": action + "_deployment", "target-resource": map[string]any{"href": id}, "state": "QUEUED", "progress": 0.0,
		"priority": 999.0, "payload": body,
	})
	w.Header().Set("Location", job)
	return http.StatusAccepted, map[string]any{
		"status": 202, "message": "starting " + id + " with async " + job, "resource-id": id, "location": job,
	}, nil
}

// forget deletes the parameters of a deployment.
func (s *Server) forget(deployment string) {
	for id, p := range s.resources {
		if strings.HasPrefix(id, "deployment-parameter/") && p.text("parent") == deployment {
			delete(s.resources, id)
		}
	}
	s.order = slices.DeleteFunc(s.order, func(id string) bool { return s.resources[id] == nil })
}
