package manifests

import (
	"context"

	"knative.dev/eventing/pkg/apis/config"
	eventingduckv1 "knative.dev/eventing/pkg/apis/duck/v1"
	duckv1 "knative.dev/pkg/apis/duck/v1"
)

// Knative's defaults for the delivery of Brokers that do not set it (ConfigMap config-br-defaults).
const (
	defaultRetry        = 10
	defaultBackoffDelay = "PT0.2S"
)

// withInstallDefaults adds the settings of a fresh Knative installation to the context, from which the types read them.
func withInstallDefaults(ctx context.Context) context.Context {
	retry, delay, policy := int32(defaultRetry), defaultBackoffDelay, eventingduckv1.BackoffPolicyExponential
	return config.ToContext(ctx, &config.Config{Defaults: &config.Defaults{
		ClusterDefaultConfig: &config.DefaultConfig{
			DefaultBrokerClass: "MTChannelBasedBroker",
			BrokerConfig: &config.BrokerConfig{
				KReference: &duckv1.KReference{
					APIVersion: "v1", Kind: "ConfigMap", Name: "config-br-default-channel", Namespace: "knative-eventing",
				},
				Delivery: &eventingduckv1.DeliverySpec{Retry: &retry, BackoffPolicy: &policy, BackoffDelay: &delay},
			},
		},
	}})
}
