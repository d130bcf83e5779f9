package placement

// called is what sentences about component c call component x. Names say the same to everyone only together with a group:
// several groups may each have a "web".
func (m *model) called(x, c int32) string {
	comp := m.comps[x]
	if comp.Name == "" {
		return comp.ID
	}
	g := m.Components[x].Group
	if g == 0 || g == m.Components[c].Group {
		return comp.Name
	}
	if name := m.p.Groups[g-1].Name; name != "" {
		return name + "/" + comp.Name
	}
	return comp.Group + "/" + comp.Name
}

// channelCalled is what sentences about component c call a channel of the solver.
func (m *model) channelCalled(i, c int32) string {
	ch := &m.p.Channels[m.channels[i]]
	if ch.Name == "" {
		return ch.ID
	}
	return ch.Name + " from " + m.called(m.Channels[i].From, c) + " to " + m.called(m.Channels[i].To, c)
}

// about makes the failure one about the thing with the id, which is called name.
func (f Failure) about(id, name string) Failure {
	if f.Key = name; name != id {
		f.id = id
	}
	return f
}
