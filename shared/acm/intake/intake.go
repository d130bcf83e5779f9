// Package intake reads the CodecoApps that are handed in, over HTTP or as objects of Kubernetes.
package intake

import (
	"context"

	"github.com/littoral-project/littoral/shared/acm"
	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/codecoapp"
	"github.com/littoral-project/littoral/shared/dialect"
	"github.com/littoral-project/littoral/shared/function"
)

// Intake has the settings.
type Intake struct{ settings application.Settings }

// New reads the settings.
func New(env *function.Env) (Intake, error) {
	var o Intake
	err := env.Config(&o.settings)
	return o, err
}

// Settings are those of an application of the caller.
func (o *Intake) Settings(ctx context.Context) acm.Settings {
	return acm.Settings{LostAfter: o.settings.LostAfter, Caller: auth.From(ctx).Subject}
}

// Read reads a CodecoApp. The error is that of dialect.Decode. A document without a namespace belongs to the default one.
func (o *Intake) Read(text []byte) (acm.Document, error) {
	parsed, err := dialect.Decode(appmodel.CODECO, text, nil)
	if err != nil {
		return acm.Document{}, err
	}
	object, err := codecoapp.Object(text)
	if err != nil {
		return acm.Document{}, err
	}
	d := acm.Document{Text: text, Parsed: parsed}
	if d.Key.Namespace, d.Key.Name = codecoapp.Name(object); d.Key.Namespace == "" {
		d.Key.Namespace = acm.DefaultNamespace
	}
	return d, nil
}
