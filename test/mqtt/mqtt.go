// Package mqtt has real brokers of MQTT for tests, and a subscriber to look at what is on one.
package mqtt

import (
	"bufio"
	"context"
	"crypto/pbkdf2"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/paho"
	"github.com/google/uuid"
	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/loopback"
)

// User and Password are those that every broker here asks for.
const (
	User     = "littoral"
	Password = "p,q%"
)

// EnvMosquitto names the program of mosquitto. Where it is set, brokers are mosquitto, in a process of their own; otherwise
// they are mochi, in this one.
const EnvMosquitto = "LITTORAL_MOSQUITTO"

// Start starts a broker that ends with the test, and returns its host and port.
func Start(t testing.TB) string {
	t.Helper()
	if program := os.Getenv(EnvMosquitto); program != "" {
		return mosquitto(t, program)
	}
	return inProcess(t)
}

func inProcess(t testing.TB) string {
	server := mochi.New(&mochi.Options{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, server.AddHook(new(auth.Hook), &auth.Options{Ledger: &auth.Ledger{
		Auth: auth.AuthRules{{Username: User, Password: Password, Allow: true}},
	}}))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, server.AddListener(listeners.NewNet("tests", listener)))
	require.NoError(t, server.Serve())
	t.Cleanup(func() { _ = server.Close() })
	return listener.Addr().String()
}

// iterations of the hash in mosquitto's file of passwords.
const iterations = 101

func mosquitto(t testing.TB, program string) string {
	folder := t.TempDir()
	free, err := loopback.Free(t.Context())
	require.NoError(t, err)
	passwords, file := filepath.Join(folder, "passwords"), filepath.Join(folder, "mosquitto.conf")
	salt := []byte("not so salty")
	hash, err := pbkdf2.Key(sha512.New, Password, salt, iterations, sha512.Size)
	require.NoError(t, err)
	encode := base64.StdEncoding.EncodeToString
	require.NoError(t, os.WriteFile(passwords, fmt.Appendf(nil, "%s:$7$%d$%s$%s\n", User, iterations, encode(salt), encode(hash)), 0o644))
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil,
		"listener %d 127.0.0.1\npassword_file %s\nallow_anonymous false\nmax_queued_messages 0\nuser root\n", free.Port(), passwords), 0o644))
	cmd := exec.Command(program, "-c", file)
	errs, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	said := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(bufio.NewReader(errs))
		said <- string(text)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if text := <-said; t.Failed() {
			t.Log(text)
		}
	})
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", free.String())
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, 20*time.Second, 20*time.Millisecond, "mosquitto does not start")
	return free.String()
}

// Message is what a broker has under a topic.
type Message struct {
	Topic    string
	Payload  string // "" = there is none any more
	Encoding string // the content type
}

// Subscriber is a client that has subscribed.
type Subscriber struct {
	client   *paho.Client
	Messages chan Message
}

// Subscribe subscribes to the topics of the filter, with what is retained.
func Subscribe(t testing.TB, address, filter string) *Subscriber {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	s := &Subscriber{Messages: make(chan Message, 100_000)}
	s.client = paho.NewClient(paho.ClientConfig{Conn: conn, OnPublishReceived: []func(paho.PublishReceived) (bool, error){
		func(r paho.PublishReceived) (bool, error) {
			m := Message{Topic: r.Packet.Topic, Payload: string(r.Packet.Payload)}
			if r.Packet.Properties != nil {
				m.Encoding = r.Packet.Properties.ContentType
			}
			s.Messages <- m
			return true, nil
		},
	}})
	_, err = s.client.Connect(t.Context(), &paho.Connect{
		ClientID: "test-" + uuid.NewString(), CleanStart: true, KeepAlive: 60,
		Username: User, UsernameFlag: true, Password: []byte(Password), PasswordFlag: true,
	})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	_, err = s.client.Subscribe(t.Context(), &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: filter, QoS: 1}}})
	require.NoError(t, err)
	return s
}

// Close ends the subscription.
func (s *Subscriber) Close() { _ = s.client.Disconnect(&paho.Disconnect{}) }

// Retained returns what the broker has retained under the filter, by topic. A message of our own marks the end. What is sent
// before it without the mark of a retained message is state too: a broker may acknowledge and retain a message first, and pass
// it on to who has subscribed meanwhile.
func Retained(t testing.TB, address, filter string) map[string]Message {
	t.Helper()
	s := Subscribe(t, address, filter)
	defer s.Close()
	end := strings.TrimSuffix(filter, "#") + "end-" + uuid.NewString()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err := s.client.Publish(ctx, &paho.Publish{QoS: 1, Topic: end, Payload: []byte("end")})
	require.NoError(t, err)
	found := map[string]Message{}
	for {
		select {
		case m := <-s.Messages:
			if m.Topic == end {
				return found
			}
			if m.Payload == "" {
				delete(found, m.Topic)
			} else {
				found[m.Topic] = m
			}
		case <-ctx.Done():
			require.NoError(t, errors.New("the broker did not send what it has retained"))
		}
	}
}
