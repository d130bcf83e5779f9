package mqtt_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/bus/sink"
	"github.com/littoral-project/littoral/shared/bus/sink/mqtt"
	"github.com/littoral-project/littoral/shared/bus/sink/sinktest"
	"github.com/littoral-project/littoral/shared/store/storetest"
	broker "github.com/littoral-project/littoral/test/mqtt"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func open(t *testing.T, address string) sink.Sink {
	t.Helper()
	a, err := sink.ParseAddress(address)
	require.NoError(t, err)
	s, err := mqtt.New(a)
	require.NoError(t, err)
	return s
}

// TestConformance runs with the broker mochi, or with mosquitto where LITTORAL_MOSQUITTO names it.
func TestConformance(t *testing.T) {
	t.Parallel()
	sinktest.Run(t, func(t *testing.T) *sinktest.World {
		address := broker.Start(t)
		wire := sinktest.NewWire(t, address)
		as := url.UserPassword(broker.User, broker.Password).String()
		return &sinktest.World{
			Open: func(t *testing.T, rest string) sink.Sink {
				return open(t, "mqtt://"+strings.ReplaceAll(as, ",", "%2C")+"@"+wire.Address+rest)
			},
			State: func(t *testing.T) map[string]sinktest.Message {
				found := map[string]sinktest.Message{}
				for topic, m := range broker.Retained(t, address, "#") {
					found[topic] = sinktest.Message{Key: topic, Payload: m.Payload, Encoding: m.Encoding}
				}
				return found
			},
			Follow: func(t *testing.T, each func(sinktest.Message)) {
				s := broker.Subscribe(t, address, "#")
				go func() {
					for {
						select {
						case m := <-s.Messages:
							each(sinktest.Message{Key: m.Topic, Payload: m.Payload, Encoding: m.Encoding})
						case <-t.Context().Done():
							return
						}
					}
				}()
			},
			Cut: wire.Cut, Heal: wire.Heal, Untakable: "a+b",
		}
	})
}

func TestAWrongPasswordIsSaidWithoutIt(t *testing.T) {
	t.Parallel()
	s := open(t, "mqtt://littoral:secret@"+broker.Start(t))
	_, err := s.Open(t.Context(), [16]byte{})
	require.ErrorContains(t, err, "refused the connection")
	require.NotContains(t, err.Error()+s.Name(), "secret")
}

func TestAddressesAreChecked(t *testing.T) {
	t.Parallel()
	for _, wrong := range []string{
		"", "localhost:1883", "mqtt://", "mqtt://h/a//b", "mqtt://h/*", "mqtt://h?select=a//b", "mqtt://h?selct=a", "ftp://h",
	} {
		a, err := sink.ParseAddress(wrong)
		if err == nil {
			_, err = mqtt.New(a)
		}
		require.Error(t, err, wrong)
	}
}
