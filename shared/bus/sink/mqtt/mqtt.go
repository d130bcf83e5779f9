// Package mqtt sends what is published on the bus to a broker of MQTT 5. A key is a topic, and its value a retained message, so
// that subscribers who come late get the state; a key that is deleted loses its message. Zenoh's plugin for MQTT maps topics to
// keys in the same way, so that a Zenoh router with it is such a broker too.
package mqtt

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"sync"

	"github.com/eclipse/paho.golang/packets"
	"github.com/eclipse/paho.golang/paho"
	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/bus"
	"github.com/littoral-project/littoral/shared/bus/sink"
)

// Sink is a broker of MQTT.
type Sink struct {
	sink.Address
	tls *tls.Config // nil = in the clear
}

// New returns the broker of an address with the scheme mqtt or mqtts. It dials nothing.
func New(a sink.Address) (*Sink, error) {
	s := &Sink{Address: a}
	switch a.URL.Scheme {
	case "mqtt":
	case "mqtts":
		s.tls = &tls.Config{ServerName: a.URL.Hostname(), MinVersion: tls.VersionTLS12}
	default:
		return nil, fmt.Errorf("the sink %s is neither mqtt nor mqtts", a.Name())
	}
	return s, nil
}

func (s *Sink) host() string {
	if s.URL.Port() != "" {
		return s.URL.Host
	}
	port := "1883"
	if s.tls != nil {
		port = "8883"
	}
	return net.JoinHostPort(s.URL.Hostname(), port)
}

// Open connects. A broker ends the former session of a client that connects again, so that whoever was believed dead sends
// nothing any more.
func (s *Sink) Open(ctx context.Context, client uuid.UUID) (sink.Session, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.host())
	if err != nil {
		return nil, err
	}
	if s.tls != nil {
		secured := tls.Client(conn, s.tls)
		if err := secured.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return nil, err
		}
		conn = packets.NewThreadSafeConn(secured)
	}
	c := paho.NewClient(paho.ClientConfig{Conn: conn})
	receive := uint16(16) // we subscribe to nothing
	connect := &paho.Connect{
		ClientID: "littoral-" + client.String(), CleanStart: true, KeepAlive: 30,
		Properties: &paho.ConnectProperties{ReceiveMaximum: &receive},
	}
	if user := s.URL.User; user != nil {
		connect.Username, connect.UsernameFlag = user.Username(), true
		if password, has := user.Password(); has {
			connect.Password, connect.PasswordFlag = []byte(password), true
		}
	}
	ack, err := c.Connect(ctx, connect)
	if err != nil {
		if ack != nil {
			return nil, fmt.Errorf("the broker refused the connection: reason %#x", ack.ReasonCode)
		}
		return nil, err
	}
	session := &session{client: c, prefix: s.Prefix}
	if p := ack.Properties; p != nil {
		if !p.RetainAvailable {
			session.Close()
			return nil, fmt.Errorf("the broker retains no messages, so that subscribers who come late would not get the state")
		}
		if p.MaximumPacketSize != nil {
			session.greatest = int(*p.MaximumPacketSize)
		}
	}
	return session, nil
}

type session struct {
	client   *paho.Client
	prefix   string
	greatest int // bytes of a packet; 0 = any
}

// Close says good-bye.
func (s *session) Close() { _ = s.client.Disconnect(&paho.Disconnect{}) }

// Reasons for which the broker will not take a message, however often it is sent.
const (
	topicInvalid   = 0x90
	packetTooLarge = 0x95
	formatInvalid  = 0x99
)

const (
	failed  = 0x80 // and above: the broker did not take it
	onWire  = 64   // bytes of a packet besides topic, encoding and payload
	longest = 65535
)

// Send publishes each value with a receipt (QoS 1), and retained.
func (s *session) Send(ctx context.Context, values []bus.Value, refused func(bus.Value, error)) error {
	var turn sync.Mutex
	return sink.Each(ctx, values, func(ctx context.Context, v bus.Value) error {
		why, err := s.publish(ctx, v)
		if why != nil {
			turn.Lock()
			defer turn.Unlock()
			refused(v, why)
		}
		return err
	})
}

// publish returns why the broker will never take the value, or an error.
func (s *session) publish(ctx context.Context, v bus.Value) (why, err error) {
	topic := s.prefix + string(v.Key)
	size := len(topic) + len(v.Encoding) + len(v.Payload) + onWire
	switch {
	case strings.ContainsAny(topic, "+#\x00"):
		return fmt.Errorf("no topic may have one of + and # in it"), nil
	case len(topic) > longest:
		return fmt.Errorf("a topic has at most %d bytes", longest), nil
	case s.greatest > 0 && size > s.greatest:
		return fmt.Errorf("the broker takes at most %d bytes", s.greatest), nil
	}
	p := &paho.Publish{QoS: 1, Retain: true, Topic: topic, Properties: &paho.PublishProperties{}}
	if !v.Deleted {
		p.Payload, p.Properties.ContentType = v.Payload, v.Encoding
	}
	answer, err := s.client.Publish(ctx, p)
	switch {
	case answer == nil || answer.ReasonCode < failed:
		return nil, err
	case answer.ReasonCode == topicInvalid || answer.ReasonCode == packetTooLarge || answer.ReasonCode == formatInvalid:
		return fmt.Errorf("the broker refused it: reason %#x", answer.ReasonCode), nil
	}
	return nil, fmt.Errorf("the broker did not take %s: reason %#x", topic, answer.ReasonCode)
}
