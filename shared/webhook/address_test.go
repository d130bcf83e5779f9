package webhook

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/problem"
)

// vectors are URLs with which an attacker makes a server call forbidden targets: our own machine, our own networks,
// metadata services, in every spelling that some parser or resolver accepts as an address. %s is the port of a
// listener.
var vectors = []string{
	// the machine itself
	"http://127.0.0.1:%s/", "http://127.0.0.1:%s/#@example.com", "http://127.1:%s/", "http://127.0.1:%s/",
	"http://127.127.127.127:%s/", "http://127.255.255.254:%s/", "http://0.0.0.0:%s/", "http://0:%s/", "http://0.0.0.1:%s/",
	"http://localhost:%s/", "http://LOCALHOST:%s/", "http://localhost.:%s/", "http://127.0.0.1.:%s/",
	"http://2130706433:%s/", "http://0x7f000001:%s/", "http://0x7f.0x0.0x0.0x1:%s/", "http://0177.0.0.1:%s/",
	"http://0177.0000.0000.0001:%s/", "http://017700000001:%s/", "http://0x7f.1:%s/", "http://127.0x1:%s/",
	"http://00000127.0.0.1:%s/", "http://3232235521:%s/", "http://2852039166:%s/", "http://127.0.0.1%%00.example.com:%s/",
	"https://127.0.0.1:%s/", "https://localhost:%s/", "HTTP://127.0.0.1:%s/",
	// the same in IPv6
	"http://[::1]:%s/", "http://[::]:%s/", "http://[0:0:0:0:0:0:0:1]:%s/", "http://[0000::1]:%s/",
	"http://[::ffff:127.0.0.1]:%s/", "http://[::ffff:7f00:1]:%s/", "http://[0:0:0:0:0:ffff:127.0.0.1]:%s/",
	"http://[::127.0.0.1]:%s/", "http://[::7f00:1]:%s/", "http://[::ffff:0:127.0.0.1]:%s/", "http://[::%%25lo]:%s/",
	"http://[fe80::1%%25lo]:%s/", "http://[fe80::1%%25eth0]:%s/", "http://[::1%%25lo]:%s/",
	// translated and tunnelled
	"http://[64:ff9b::127.0.0.1]:%s/", "http://[64:ff9b::7f00:1]:%s/", "http://[64:ff9b::a9fe:a9fe]:%s/",
	"http://[64:ff9b:1::7f00:1]:%s/", "http://[2002:7f00:1::]:%s/", "http://[2002:7f00:0001::1]:%s/",
	"http://[2002:a9fe:a9fe::]:%s/", "http://[2002:c0a8:0101::1]:%s/", "http://[2001:0:7f00:1::]:%s/",
	"http://[2001:0000:4136:e378:8000:63bf:3fff:fdd2]:%s/",
	// private networks
	"http://10.0.0.1:%s/", "http://10.255.255.255:%s/", "http://10.1:%s/", "http://172.16.0.1:%s/", "http://172.31.255.254:%s/",
	"http://192.168.0.1:%s/", "http://192.168.255.254:%s/", "http://192.168.1:%s/", "http://100.64.0.1:%s/",
	"http://100.127.255.254:%s/", "http://[fc00::1]:%s/", "http://[fd00::1]:%s/", "http://[fd12:3456:789a::1]:%s/",
	"http://[fec0::1]:%s/", "http://[::ffff:10.0.0.1]:%s/", "http://[::ffff:192.168.0.1]:%s/", "http://012.0.0.1:%s/",
	"http://0xa.0.0.1:%s/", "http://0xc0a80001:%s/", "http://0xac100001:%s/",
	// metadata services
	"http://169.254.169.254:%s/latest/meta-data/", "http://169.254.169.254.:%s/", "http://169.254.170.2:%s/v2/credentials",
	"http://169.254.169.253:%s/", "http://169.254.169.123:%s/", "http://169.254.0.1:%s/", "http://0xa9fea9fe:%s/",
	"http://0xa9.0xfe.0xa9.0xfe:%s/", "http://0251.0376.0251.0376:%s/", "http://[::ffff:169.254.169.254]:%s/",
	"http://[::ffff:a9fe:a9fe]:%s/", "http://[fd00:ec2::254]:%s/", "http://100.100.100.200:%s/latest/meta-data/",
	"http://192.0.0.192:%s/opc/v1/", "http://168.63.129.16:%s/", "http://metadata:%s/", "http://metadata.google.internal:%s/",
	"http://instance-data:%s/", "http://kubernetes.default.svc:%s/", "http://[fd20:ce::254]:%s/",
	// for documentation, tests and broadcast
	"http://192.0.2.1:%s/", "http://198.51.100.1:%s/", "http://203.0.113.1:%s/", "http://198.18.0.1:%s/",
	"http://198.19.255.254:%s/", "http://192.88.99.1:%s/", "http://224.0.0.1:%s/", "http://239.255.255.250:%s/",
	"http://240.0.0.1:%s/", "http://255.255.255.255:%s/", "http://[ff02::1]:%s/", "http://[ff05::2]:%s/",
	"http://[2001:db8::1]:%s/", "http://[100::1]:%s/", "http://[3fff::1]:%s/", "http://[5f00::1]:%s/",
	// names that resolve inwards, and hosts that two parsers read differently
	"http://127.0.0.1.nip.io:%s/", "http://localtest.me:%s/", "http://example.com@127.0.0.1:%s/",
	"http://127.0.0.1:%s@example.com/", "http://user:pass@127.0.0.1:%s/", "http://127.0.0.1\\@example.com:%s/",
	"http://127.0.0.1:%s\\.example.com/", "http://example.com\\@127.0.0.1:%s/", "http:///127.0.0.1:%s/",
	"http:127.0.0.1:%s/", "http://①②⑦.⓪.⓪.①:%s/", "http://127。0。0。1:%s/", "http://localhost%%2e:%s/",
	"http://127.0.0.1%%23@example.com:%s/", "http://127.0.0.1\t:%s/", "http://127.0.0.1\r\nHost: x:%s/", "http:// 127.0.0.1:%s/",
	"//127.0.0.1:%s/", "127.0.0.1:%s/",
	// other schemes
	"file:///etc/passwd?%s", "gopher://127.0.0.1:%s/_x", "dict://127.0.0.1:%s/", "ftp://127.0.0.1:%s/", "ldap://127.0.0.1:%s/",
	"unix:///var/run/docker.sock?%s", "jar:http://127.0.0.1:%s/!/", "data:text/plain,%s", "javascript:alert(%s)",
	"http+unix://%%2Fvar%%2Frun:%s/", "ws://127.0.0.1:%s/", "tftp://127.0.0.1:%s/", "netdoc:///etc/hosts?%s",
}

// inward resolves every name to our own machine, like a hostile name server.
func inward() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go answerWithLoopback(server)
		return client, nil
	}}
}

func TestNoVectorGetsThrough(t *testing.T) {
	t.Parallel()
	require.GreaterOrEqual(t, len(vectors), 100)
	var connects atomic.Int64
	port := listen(t, &connects)
	c, err := New(Config{Timeout: 2 * time.Second}, http.DefaultClient)
	require.NoError(t, err)
	c.dialer.Resolver = inward()
	for _, vector := range vectors {
		t.Run(vector, func(t *testing.T) {
			for _, method := range Methods {
				err := c.Do(t.Context(), Call{Method: method, URL: fill(vector, port), Body: map[string]any{}})
				require.Error(t, err)
			}
		})
	}
	err = c.Do(t.Context(), Call{Method: http.MethodPost, URL: fill("http://hooks.example.com:%s/", port)})
	require.Equal(t, problem.Forbidden, problem.KindOf(err), "a name is judged by what it resolves to: %v", err)
	require.Zero(t, connects.Load(), "nobody was connected to")
}

// listen counts connections at every address of the machine.
func listen(t *testing.T, connects *atomic.Int64) string {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			connects.Add(1)
			_ = conn.Close()
		}
	}()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return port
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	var inner atomic.Int64
	secret := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inner.Add(1) }))
	t.Cleanup(secret.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		lure := httptest.NewServer(http.RedirectHandler(secret.URL, status))
		t.Cleanup(lure.Close)
		c, err := New(Config{Timeout: 2 * time.Second, Allow: []string{"127.0.0.1"}}, http.DefaultClient)
		require.NoError(t, err)
		err = c.Do(t.Context(), Call{Method: http.MethodPost, URL: lure.URL})
		require.Equal(t, problem.Unavailable, problem.KindOf(err), "%v", err)
	}
	require.Zero(t, inner.Load())
}

func TestWhatIsAllowedAndWhatIsPublicIsCalled(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		allow   []string
		address string
		want    bool
	}{
		{nil, "93.184.216.34:80", true},
		{nil, "[2606:2800:220:1::1]:443", true},
		{nil, "10.1.2.3:80", false},
		{[]string{"10.1.0.0/16"}, "10.1.2.3:80", true},
		{[]string{"10.1.0.0/16"}, "10.2.2.3:80", false},
		{[]string{"10.1.2.3"}, "[::ffff:10.1.2.3]:80", true},
		{[]string{"fd00::/8"}, "[fd00::1]:80", true},
		{[]string{"jobmanager.littoral.svc"}, "10.1.2.3:80", false},
	} {
		allowed, err := newAllowed(row.allow)
		require.NoError(t, err)
		require.Equal(t, row.want, allowed.control("tcp", row.address, nil) == nil, "%v %s", row.allow, row.address)
	}
	_, err := newAllowed([]string{"*.example.com"})
	require.Error(t, err)
}
