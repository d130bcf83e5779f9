//go:build pin

// Package pin keeps the agreed versions in go.mod until the code that needs them lands.
package pin

import (
	_ "github.com/alecthomas/kong"
	_ "github.com/cloudevents/sdk-go/v2"
	_ "github.com/fergusstrange/embedded-postgres"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/google/uuid"
	_ "github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/kelseyhightower/envconfig"
	_ "github.com/pressly/goose/v3"
	_ "github.com/prometheus/alertmanager/template"
	_ "github.com/prometheus/prometheus/promql"
	_ "github.com/prometheus/prometheus/tsdb"
	_ "github.com/prometheus/prometheus/web/api/v1"
	_ "github.com/robfig/cron/v3"
	_ "github.com/zitadel/oidc/v3/pkg/op"
	_ "k8s.io/client-go/dynamic"
	_ "knative.dev/eventing/pkg/apis/eventing/v1"
	_ "knative.dev/eventing/pkg/apis/sources/v1"
	_ "knative.dev/eventing/pkg/eventfilter/subscriptionsapi"
	_ "knative.dev/pkg/network/handlers"
	_ "knative.dev/serving/pkg/apis/serving/v1"
	_ "sigs.k8s.io/kustomize/api/krusty"
	_ "sigs.k8s.io/yaml"
)
