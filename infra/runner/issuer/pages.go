package issuer

import (
	_ "embed"
	"html/template"
	"net/http"
)

const (
	loginPath  = "/login"
	devicePath = "/device"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("").Parse(pageText))

// view is what a page shows.
type view struct {
	Title, Lead string
	Alert       string // what went wrong
	Done        bool   // nothing more to do: no form
	Request     string // of a client that waits for somebody to sign in
	Device      bool   // asks for the code of a device
	UserCode    string
	SignedIn    string // who is; "" asks for name and password
	Name        string // to begin with
}

// newPages serves the pages to people. They work without scripts, and refuse forms that another page sends.
func newPages(i *Issuer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+loginPath, i.showLogin)
	mux.HandleFunc("POST "+loginPath, i.confirmLogin)
	mux.HandleFunc("GET "+devicePath, i.showDevice)
	mux.HandleFunc("POST "+devicePath, i.confirmDevice)
	return http.NewCrossOriginProtection().Handler(mux)
}

func show(w http.ResponseWriter, status int, v view) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = pageTemplate.Execute(w, v) // the reader has gone if this fails
}

const (
	loginTitle  = "Sign in to Littoral"
	deviceTitle = "Let a device in"
	again       = "This page is too old, or was used. Begin again where you came from."
	wrong       = "There is nobody with this name and password."
)

func (i *Issuer) showLogin(w http.ResponseWriter, r *http.Request) {
	request := r.URL.Query().Get("request")
	switch {
	case request == "":
		show(w, http.StatusOK, view{Title: "Signed out", Lead: "You are signed out.", Done: true})
	case !i.visits.known(request):
		show(w, http.StatusBadRequest, view{Title: loginTitle, Alert: again, Done: true})
	default:
		show(w, http.StatusOK, view{Title: loginTitle, Request: request})
	}
}

func (i *Issuer) confirmLogin(w http.ResponseWriter, r *http.Request) {
	request, name := r.PostFormValue("request"), r.PostFormValue("username")
	user, ok := i.user(name, r.PostFormValue("password"))
	if !ok {
		show(w, http.StatusUnauthorized, view{Title: loginTitle, Request: request, Name: name, Alert: wrong})
		return
	}
	session := i.enter(w, user)
	to, ok := i.back(request, user.Name, session)
	if !ok {
		show(w, http.StatusBadRequest, view{Title: loginTitle, Alert: again, Done: true})
		return
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// enter remembers the user in this browser and returns the id of the session.
func (i *Issuer) enter(w http.ResponseWriter, user User) string {
	now := i.options.Now()
	g := grant{User: user.Name, Session: random(), At: now, Expires: now.Add(signedIn)}
	http.SetCookie(w, i.cookie(i.seal(cookiePurpose, g), signedIn))
	return g.Session
}

func (i *Issuer) showDevice(w http.ResponseWriter, r *http.Request) {
	g, _ := i.signedIn(r.Header)
	show(w, http.StatusOK, view{
		Title: deviceTitle, Lead: "Compare the code with that on the device. Whoever has the device then acts as you.",
		Device: true, UserCode: r.URL.Query().Get("user_code"), SignedIn: g.User,
	})
}

func (i *Issuer) confirmDevice(w http.ResponseWriter, r *http.Request) {
	v := view{Title: deviceTitle, Device: true, UserCode: r.PostFormValue("user_code"), Name: r.PostFormValue("username")}
	g, here := i.signedIn(r.Header)
	v.SignedIn = g.User
	if !here {
		user, ok := i.user(v.Name, r.PostFormValue("password"))
		if !ok {
			v.Alert = wrong
			show(w, http.StatusUnauthorized, v)
			return
		}
		i.enter(w, user)
		g.User, v.SignedIn = user.Name, user.Name
	}
	allow := r.PostFormValue("answer") != "refuse"
	if !i.visits.decide(v.UserCode, g.User, allow) {
		v.Alert = "No device waits with this code. Look at it once more."
		show(w, http.StatusBadRequest, v)
		return
	}
	v.Lead, v.Done = "The device is signed in. You can close this page.", true
	if !allow {
		v.Lead = "The device was refused. You can close this page."
	}
	show(w, http.StatusOK, v)
}
