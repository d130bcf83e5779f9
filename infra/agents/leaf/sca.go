package main

import (
	"os"
	"strings"
	"syscall"
)

// check is one question about the host's configuration, after the CIS benchmarks for Linux.
type check struct {
	name string
	// pass answers the question; known is false when it cannot be told, such as without the file.
	pass func(l *leaf) (pass, known bool)
}

// checks are few and stated: tlum_sca_check names each with its result, so that nobody takes the score for more.
var checks = []check{
	{"address space is laid out at random", sysctl("kernel/randomize_va_space", "2")},
	{"programs with set-uid leave no core dumps", sysctl("fs/suid_dumpable", "0")},
	{"kernel pointers are hidden", sysctl("kernel/kptr_restrict", "1", "2")},
	{"the kernel's log is for administrators", sysctl("kernel/dmesg_restrict", "1")},
	{"symbolic links are protected", sysctl("fs/protected_symlinks", "1")},
	{"hard links are protected", sysctl("fs/protected_hardlinks", "1")},
	{"no ICMP redirects are accepted", sysctl("net/ipv4/conf/all/accept_redirects", "0")},
	{"no source routing is accepted", sysctl("net/ipv4/conf/all/accept_source_route", "0")},
	{"broadcasts are not answered", sysctl("net/ipv4/icmp_echo_ignore_broadcasts", "1")},
	{"SYN cookies are used", sysctl("net/ipv4/tcp_syncookies", "1", "2")},
	{"passwd is written by root alone", mode("etc/passwd", 0o022)},
	{"shadow is read by root alone", mode("etc/shadow", 0o027)},
	{"group is written by root alone", mode("etc/group", 0o022)},
	{"crontab is written by root alone", mode("etc/crontab", 0o022)},
	{"nobody but root has the id 0", onlyRoot},
	{"no account is without password", noEmptyPassword},
	{"root does not sign in by password over SSH", sshd("permitrootlogin", "no", "prohibit-password", "without-password")},
	{"SSH takes no empty passwords", sshd("permitemptypasswords", "no")},
}

func sysctl(name string, good ...string) func(*leaf) (bool, bool) {
	return func(l *leaf) (bool, bool) {
		v := l.read("proc/sys/" + name)
		return contains(good, v), v != ""
	}
}

func contains(list []string, v string) bool {
	for _, one := range list {
		if one == v {
			return true
		}
	}
	return false
}

// mode wants a file of root without these rights.
func mode(name string, not os.FileMode) func(*leaf) (bool, bool) {
	return func(l *leaf) (bool, bool) {
		info, err := os.Stat(l.path(name))
		if err != nil {
			return false, false
		}
		owner, ok := info.Sys().(*syscall.Stat_t)
		return info.Mode().Perm()&not == 0 && ok && owner.Uid == 0, true
	}
}

func onlyRoot(l *leaf) (bool, bool) {
	text := l.read("etc/passwd")
	for line := range strings.Lines(text) {
		if f := strings.Split(line, ":"); len(f) > 2 && f[2] == "0" && f[0] != "root" {
			return false, true
		}
	}
	return true, text != ""
}

func noEmptyPassword(l *leaf) (bool, bool) {
	text := l.read("etc/shadow")
	for line := range strings.Lines(text) {
		if f := strings.Split(line, ":"); len(f) > 1 && f[1] == "" {
			return false, true
		}
	}
	return true, text != ""
}

// sshd wants a setting of the SSH server, whose first mention counts. Where it is not mentioned, the server's default is
// taken to be good; where there is no server, nothing can be told.
func sshd(setting string, good ...string) func(*leaf) (bool, bool) {
	return func(l *leaf) (bool, bool) {
		text := l.read("etc/ssh/sshd_config")
		for line := range strings.Lines(text) {
			if f := strings.Fields(strings.ToLower(line)); len(f) > 1 && f[0] == setting {
				return contains(good, f[1]), true
			}
		}
		return true, text != ""
	}
}

// assess tells the share of the checks that could be answered and are passed, as a score of 0 to 100.
func (l *leaf) assess(k *look, hostname string) {
	passed, told := 0, 0
	for _, c := range checks {
		pass, known := c.pass(l)
		result := "unknown"
		if known {
			told++
			result = "failed"
			if pass {
				passed++
				result = "passed"
			}
		}
		k.add("tlum_sca_check", "A question about the host's configuration", 1, labels{"check": c.name, "result": result})
	}
	if told > 0 {
		k.add("SCA_score", "Share of the checks that are passed, 0 to 100", 100*float64(passed)/float64(told), labels{
			"agent_hostname": hostname, "agent_ip": address(), "agent_name": hostname, "method": "self-assessment",
		})
	}
}
