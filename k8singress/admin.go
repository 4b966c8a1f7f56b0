package k8singress

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/caddyserver/caddy/v2"

	"github.com/k8singress/k8singress/internal/control/apply"
	"github.com/k8singress/k8singress/internal/control/engine"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/settings"
)

func init() { caddy.RegisterModule(new(Admin)) }

// Admin adds routes to Caddy's admin API:
//
//   - GET /k8singress/config: returns the complete configuration that is served, as Caddy JSON;
//   - PUT /k8singress/config: replaces the served configuration, if the process watches no objects itself;
//   - GET /k8singress/status: returns whether the process is ready, and the numbers of objects and problems;
//   - GET /k8singress/objects: returns for each object whether it is accepted, and its problems;
//   - GET /k8singress/process: returns a random string that identifies the process;
//   - GET /reverse_proxy/upstreams: returns Caddy's list of upstreams, with the endpoints of the controller added.
//
// If Caddy was started by `caddy k8singress run`, Admin also rejects POST /load.
type Admin struct{}

// CaddyModule returns the Caddy module information.
func (*Admin) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "admin.api.k8singress", New: func() caddy.Module { return new(Admin) }}
}

// Routes returns the routes for the admin API. Their handlers look up the running k8singress app for each request,
// because Caddy creates the routes before the app.
func (a *Admin) Routes() []caddy.AdminRoute {
	return append([]caddy.AdminRoute{
		{Pattern: "/k8singress/config", Handler: caddy.AdminHandlerFunc(a.config)},
		{Pattern: "/k8singress/status", Handler: readOnly(a.status)},
		{Pattern: "/k8singress/objects", Handler: readOnly(a.objects)},
		apply.ProcessRoute(),
		upstreamsRoute(),
	}, reloadRoutes()...)
}

// readOnly rejects all methods except GET and HEAD.
func readOnly(serve caddy.AdminHandlerFunc) caddy.AdminHandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			return notAllowed(w, r, "GET, HEAD")
		}
		return serve(w, r)
	}
}

func notAllowed(w http.ResponseWriter, r *http.Request, allowed string) error {
	w.Header().Set("Allow", allowed)
	return failed(http.StatusMethodNotAllowed, fmt.Errorf("method %s is not allowed", r.Method))
}

// maxDocument is the maximum size, in bytes, of a configuration sent with PUT. Ten thousand hosts take about 10 MB.
const maxDocument = 256 << 20

func (a *Admin) config(w http.ResponseWriter, r *http.Request) error {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		e, err := running()
		if err != nil {
			return err
		}
		return writeJSON(w, engine.Compose(e.Settings(), e.Document()))
	case http.MethodPut:
		return a.put(w, r)
	}
	return notAllowed(w, r, "GET, HEAD, PUT")
}

// put handles PUT requests that replace the served configuration. The body has two parts: the hosts and routes to
// serve, and the options of the app. put always loads the hosts and routes. It uses the options only if the process has
// no k8singress app yet.
func (a *Admin) put(w http.ResponseWriter, r *http.Request) error {
	if e := started.engine(); e != nil && e.HasSource() {
		return failed(http.StatusConflict, engine.ErrHasSource)
	}
	raw, err := readDocument(w, r, maxDocument)
	if err != nil {
		return err
	}
	options, live, err := engine.Split(raw)
	if err != nil {
		return failed(http.StatusBadRequest, err)
	}
	if started.engine() == nil {
		if err := loadStructure(r, options); err != nil {
			return failed(http.StatusBadRequest, err)
		}
	}
	return a.load(w, r, live)
}

// readDocument reads the body of a request. It returns an error if the body is larger than limit. If the Content-Length
// exceeds limit, it does not read the body.
func readDocument(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	tooLarge := &http.MaxBytesError{Limit: limit}
	if r.ContentLength > limit {
		return nil, failed(http.StatusRequestEntityTooLarge, tooLarge)
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	switch {
	case errors.As(err, &tooLarge):
		return nil, failed(http.StatusRequestEntityTooLarge, err)
	case err != nil:
		return nil, failed(http.StatusBadRequest, fmt.Errorf("reading the document: %w", err))
	}
	return raw, nil
}

func (a *Admin) load(w http.ResponseWriter, r *http.Request, live *document.Live) error {
	e, err := running()
	if err != nil {
		return err
	}
	if err := e.Load(r.Context(), live); err != nil {
		return failed(http.StatusServiceUnavailable, err)
	}
	return writeJSON(w, e.Status())
}

// loadStructure adds the k8singress app with the given options to the running Caddy. It does so through Caddy's admin
// API, at the address where the request r arrived.
func loadStructure(r *http.Request, options settings.Config) error {
	address, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return errors.New("the address of the admin API is not known")
	}
	return engine.LoadStructure(r.Context(), address.Network()+"/"+address.String(), options)
}

func (a *Admin) status(w http.ResponseWriter, _ *http.Request) error {
	e, err := running()
	if err != nil {
		return err
	}
	return writeJSON(w, e.Status())
}

// objectRef is an ir.Ref whose JSON encoding is an object instead of a string.
type objectRef ir.Ref

// objectVerdict is one element of the response to GET /k8singress/objects.
type objectVerdict struct {
	Object   objectRef        `json:"object"`
	Accepted bool             `json:"accepted"`
	Parents  []report.Parent  `json:"parents,omitempty"`
	Problems []report.Problem `json:"problems,omitempty"`
}

func (a *Admin) objects(w http.ResponseWriter, _ *http.Request) error {
	e, err := running()
	if err != nil {
		return err
	}
	all := []objectVerdict{}
	for _, v := range e.Report().Verdicts {
		all = append(all, objectVerdict{objectRef(v.Object), v.Accepted(), v.Stated(), v.Problems})
	}
	return writeJSON(w, all)
}

func running() (*engine.Engine, error) {
	if e := started.engine(); e != nil {
		return e, nil
	}
	return nil, failed(http.StatusNotFound, errors.New("the configuration has no k8singress app"))
}

func failed(status int, err error) error { return caddy.APIError{HTTPStatus: status, Err: err} }

func writeJSON(w http.ResponseWriter, v any) error {
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

var _ caddy.AdminRouter = (*Admin)(nil)
