package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// kindsOfDevices are the devices that components ask for, by the files below /dev, and how requirements call them.
var kindsOfDevices = []struct {
	kind, path string
	file       *regexp.Regexp
}{
	{"video", "squat.ai/video", regexp.MustCompile(`^video(\d+)$`)},
	{"serial", "squat.ai/serial", regexp.MustCompile(`^tty(?:USB|ACM|AMA)(\d+)$`)},
	{"audio", "squat.ai/audio", regexp.MustCompile(`^snd/pcmC(\d+)D0c$`)},
	{"gpu", "squat.ai/gpu", regexp.MustCompile(`^dri/renderD(\d+)$`)},
	{"nvidia", "nvidia.com/gpu", regexp.MustCompile(`^nvidia(\d+)$`)},
	{"usb", "squat.ai/usb", regexp.MustCompile(`^bus/usb/(\d+/\d+)$`)},
}

// device is one that was seen.
type device struct {
	name, path, file string
	gone             time.Time // zero while it is there
}

const (
	available = 1.0
	busy      = 0.0
	detached  = -1.0

	// remembered is how long one that has gone is told as detached, longer than any rule looks back.
	remembered = time.Hour
)

// attached lists the devices that are there now.
func (l *leaf) attached() []device {
	root := l.o.DevRoot
	if root == "" {
		root = l.path("dev")
	}
	var files []string
	for _, pattern := range []string{"*", "snd/*", "dri/*", "bus/usb/*/*"} {
		found, _ := filepath.Glob(filepath.Join(root, pattern))
		files = append(files, found...)
	}
	var list []device
	for _, file := range files {
		relative, err := filepath.Rel(root, file)
		if err != nil {
			continue
		}
		for _, kind := range kindsOfDevices {
			if match := kind.file.FindStringSubmatch(relative); match != nil {
				number := strings.TrimLeft(strings.ReplaceAll(match[1], "/", "-"), "0")
				if number == "" {
					number = "0"
				}
				list = append(list, device{name: kind.kind + "_" + number, path: kind.path, file: "/dev/" + relative})
			}
		}
	}
	slices.SortFunc(list, func(a, b device) int { return strings.Compare(a.name, b.name) })
	return list
}

// present names the devices that are there, to see whether that changes.
func (l *leaf) present() string {
	var names []string
	for _, d := range l.attached() {
		names = append(names, d.name)
	}
	return strings.Join(names, " ")
}

// lookForDevices tells the devices: those there as available, or busy while some process has one open, and those that have
// gone as detached.
func (l *leaf) lookForDevices(k *look) {
	now := time.Now()
	there := map[string]bool{}
	list := l.attached()
	for _, d := range list {
		there[d.name] = true
		l.devices[d.name] = d
	}
	for name, d := range l.devices {
		switch {
		case there[name]:
		case d.gone.IsZero():
			d.gone = now
			l.devices[name] = d
		case now.Sub(d.gone) > remembered:
			delete(l.devices, name)
		}
	}
	open := map[string]bool{}
	if len(list) > 0 {
		open = l.opened()
	}
	for name, d := range l.devices {
		state := available
		switch {
		case !there[name]:
			state = detached
		case open[d.file]:
			state = busy
		}
		k.add("node_mounted", "A device: 1 available, 0 busy, -1 detached", state, labels{"device": name, "resource_path": d.path})
	}
}

// opened are the files below /dev that some process has open, as far as it may be seen.
func (l *leaf) opened() map[string]bool {
	all := map[string]bool{}
	links, _ := filepath.Glob(l.path("proc/[0-9]*/fd/*"))
	for _, link := range links {
		if file, err := os.Readlink(link); err == nil && strings.HasPrefix(file, "/dev/") {
			all[file] = true
		}
	}
	return all
}
