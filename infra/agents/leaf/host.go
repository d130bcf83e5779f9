package main

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func (l *leaf) hostname() string {
	if name := l.read("proc/sys/kernel/hostname"); name != "" {
		return name
	}
	name, _ := os.Hostname()
	return name
}

// arch is the machine's architecture as Go and Kubernetes call it.
func (l *leaf) arch() string { return runtime.GOARCH }

// host tells what the machine is, and where.
func (l *leaf) host(k *look, hostname string) {
	latitude, longitude := l.location()
	k.add("tlum_host_info", "The host", 1, labels{
		"os": runtime.GOOS, "arch": l.arch(), "ip": address(), "hostname": hostname, "latitude": latitude, "longitude": longitude,
		"tlum_host_id": l.hostID(),
	})
	k.add("tlum_info", "This exporter", 1, labels{"prop_exporter": "littoral-leaf"})
	cpus, _ := filepath.Glob(l.path("sys/devices/system/cpu/cpu[0-9]*"))
	for _, dir := range cpus {
		cpu := strings.TrimPrefix(filepath.Base(dir), "cpu")
		for name, file := range map[string]string{"tlum_cpu_freq": "scaling_cur_freq", "tlum_cpu_max_freq": "cpuinfo_max_freq"} {
			if kHz, err := strconv.ParseFloat(l.read("sys/devices/system/cpu/cpu"+cpu+"/cpufreq/"+file), 64); err == nil {
				k.add(name, "Frequency of a cpu in MHz", kHz/1000, labels{"cpu": cpu})
			}
		}
	}
}

// location is that of the command line, or of a file.
func (l *leaf) location() (latitude, longitude string) {
	text := l.o.Location
	if data, err := os.ReadFile(text); text != "" && err == nil {
		text = strings.TrimSpace(string(data))
	}
	latitude, longitude, _ = strings.Cut(text, ":")
	for _, degrees := range []string{latitude, longitude} {
		if _, err := strconv.ParseFloat(degrees, 64); err != nil {
			return "", ""
		}
	}
	return latitude, longitude
}

// address is the one that others reach the host at: that of the way out. Nothing is sent.
func address() string {
	for _, out := range []string{"192.0.2.1:9", "[2001:db8::1]:9"} {
		if c, err := net.Dial("udp", out); err == nil {
			_ = c.Close()
			return c.LocalAddr().(*net.UDPAddr).IP.String() //nolint:forcetypeassert // of a UDP socket
		}
	}
	return ""
}

// usesOwnNodeMetrics reports whether no node_exporter tells the same.
func (l *leaf) usesOwnNodeMetrics(ctx context.Context) bool {
	if l.o.NodeExporter != "auto" {
		return l.o.NodeExporter == "on"
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, "http://127.0.0.1:9100/metrics", nil)
	if err != nil {
		return true
	}
	resp, err := l.client.Do(req)
	if err != nil {
		return true
	}
	_ = resp.Body.Close()
	return resp.StatusCode != http.StatusOK
}

// modes are the columns of /proc/stat, in hundredths of a second.
var modes = []string{"user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"}

// nodeMetrics are those that a node_exporter would tell, as far as the taxonomy and policies read them.
func (l *leaf) nodeMetrics(k *look) {
	k.add("node_uname_info", "The kernel", 1, labels{
		"sysname": "Linux", "release": l.read("proc/sys/kernel/osrelease"), "nodename": l.hostname(), "machine": machine[l.arch()],
	})
	busy, total, cpus := 0.0, 0.0, 0
	for line := range strings.Lines(l.read("proc/stat")) {
		fields := strings.Fields(line)
		if len(fields) < 1+len(modes) || !strings.HasPrefix(fields[0], "cpu") {
			if len(fields) == 2 && fields[0] == "btime" {
				if at, err := strconv.ParseFloat(fields[1], 64); err == nil {
					k.add("node_boot_time_seconds", "When the host was started", at, nil)
				}
			}
			continue
		}
		cpu := fields[0][len("cpu"):]
		for i, mode := range modes {
			ticks, err := strconv.ParseFloat(fields[1+i], 64)
			if err != nil {
				continue
			}
			if cpu == "" { // of all together
				total += ticks
				if mode != "idle" && mode != "iowait" {
					busy += ticks
				}
				continue
			}
			k.count("node_cpu_seconds_total", "Time of a cpu by mode", ticks/100, labels{"cpu": cpu, "mode": mode})
		}
		if cpu != "" {
			cpus++
		}
	}
	for line := range strings.Lines(l.read("proc/meminfo")) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		name := strings.TrimSuffix(fields[0], ":")
		switch name {
		case "MemTotal", "MemAvailable", "MemFree", "Cached", "Buffers", "SwapTotal", "SwapFree":
			if kB, err := strconv.ParseFloat(fields[1], 64); err == nil {
				k.add("node_memory_"+name+"_bytes", "Memory of the host", 1024*kB, nil)
			}
		}
	}
	if load := strings.Fields(l.read("proc/loadavg")); len(load) > 0 {
		if v, err := strconv.ParseFloat(load[0], 64); err == nil {
			k.add("node_load1", "Processes that wait, mean of a minute", v, nil)
		}
	}
	l.network(k)
	l.disk(k)
	l.temperatures(k)
	l.power(k, busy, total)
}

// machine is what the kernel calls an architecture.
var machine = map[string]string{"amd64": "x86_64", "arm64": "aarch64", "arm": "armv7l", "riscv64": "riscv64"}

func (l *leaf) network(k *look) {
	traffic := map[string][2]float64{}
	for line := range strings.Lines(l.read("proc/1/net/dev") + "\n" + l.read("proc/net/dev")) {
		name, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
		fields := strings.Fields(rest)
		if !ok || len(fields) < 9 {
			continue
		}
		in, err1 := strconv.ParseFloat(fields[0], 64)
		out, err2 := strconv.ParseFloat(fields[8], 64)
		if _, known := traffic[name]; err1 == nil && err2 == nil && !known {
			traffic[name] = [2]float64{in, out}
		}
	}
	for name, bytes := range traffic {
		if virtual(name) {
			continue
		}
		of := labels{"device": name}
		k.count("node_network_receive_bytes_total", "Bytes received", bytes[0], of)
		k.count("node_network_transmit_bytes_total", "Bytes sent", bytes[1], of)
		dir := "sys/class/net/" + name + "/"
		state := l.read(dir + "operstate")
		if state == "" {
			continue
		}
		up := 0.0
		if state == "up" {
			up = 1
		}
		k.add("node_network_up", "Whether the interface is up", up, of)
		k.add("node_network_info", "The interface", 1, labels{"device": name, "duplex": l.read(dir + "duplex"), "operstate": state})
		if mbit, err := strconv.ParseFloat(l.read(dir+"speed"), 64); err == nil && mbit > 0 {
			k.add("node_network_speed_bytes", "Bytes a second", mbit*1e6/8, of)
		}
	}
	interfaces, err := net.Interfaces() // of this network namespace; the manifests use the host's
	if err != nil {
		return
	}
	for _, i := range interfaces {
		addresses, err := i.Addrs()
		if err != nil || virtual(i.Name) {
			continue
		}
		for _, a := range addresses {
			n, ok := a.(*net.IPNet)
			if !ok {
				continue
			}
			scope := "global"
			if n.IP.IsLinkLocalUnicast() {
				scope = "link-local"
			}
			ones, _ := n.Mask.Size()
			k.add("node_network_address_info", "An address of the interface", 1, labels{
				"device": i.Name, "address": n.IP.String(), "netmask": strconv.Itoa(ones), "scope": scope,
			})
		}
	}
}

// virtual are loopback and the devices of containers.
func virtual(name string) bool {
	for _, prefix := range []string{"lo", "veth", "cali", "lxc", "docker", "br-", "cni", "flannel"} {
		if name == prefix || prefix != "lo" && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

func (l *leaf) disk(k *look) {
	var s syscall.Statfs_t
	if syscall.Statfs(l.o.Root, &s) != nil {
		return
	}
	of := labels{"mountpoint": "/"}
	size := float64(s.Bsize)
	k.add("node_filesystem_size_bytes", "Size of a file system", float64(s.Blocks)*size, of)
	k.add("node_filesystem_avail_bytes", "What is free of it", float64(s.Bavail)*size, of)
}

func (l *leaf) temperatures(k *look) {
	zones, _ := filepath.Glob(l.path("sys/class/thermal/thermal_zone*"))
	for _, dir := range zones {
		zone := filepath.Base(dir)
		if milli, err := strconv.ParseFloat(l.read("sys/class/thermal/"+zone+"/temp"), 64); err == nil {
			k.add("node_thermal_zone_temp", "Temperature in degrees Celsius", milli/1000, labels{
				"zone": strings.TrimPrefix(zone, "thermal_zone"), "type": l.read("sys/class/thermal/" + zone + "/type"),
			})
		}
	}
}

// meter counts energy that nobody measures.
type meter struct {
	at          time.Time
	busy, total float64 // ticks at that time
	microjoules float64
}

// power tells the energy that was used: what RAPL counted, or an estimate, idle + (max - idle) * share of busy cpus, whose
// label says so. Without either there is no series.
func (l *leaf) power(k *look, busy, total float64) {
	packages, _ := filepath.Glob(l.path("sys/class/powercap/intel-rapl:[0-9]*"))
	sum, measured := 0.0, false
	for _, dir := range packages {
		if strings.Count(filepath.Base(dir), ":") > 1 {
			continue // a part of a package, which is in its sum
		}
		if uJ, err := strconv.ParseFloat(l.read("sys/class/powercap/"+filepath.Base(dir)+"/energy_uj"), 64); err == nil {
			sum, measured = sum+uJ, true
		}
	}
	const name, help = "scaph_host_energy_microjoules_total", "Energy that the host used, in microjoules"
	if measured {
		k.count(name, help, sum, labels{"method": "rapl"})
		return
	}
	if l.o.WattsMax <= 0 || l.o.WattsMax < l.o.WattsIdle {
		return
	}
	m := &l.energy
	now := time.Now()
	if ticks := total - m.total; !m.at.IsZero() && ticks > 0 {
		share := min(1, max(0, (busy-m.busy)/ticks))
		m.microjoules += 1e6 * now.Sub(m.at).Seconds() * (l.o.WattsIdle + (l.o.WattsMax-l.o.WattsIdle)*share)
	}
	m.at, m.busy, m.total = now, busy, total
	k.count(name, help, m.microjoules, labels{"method": "estimated"})
}
