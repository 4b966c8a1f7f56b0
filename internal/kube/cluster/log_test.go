package cluster

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/k8singress/k8singress/internal/model/kinds"
)

func TestWatchErrorsAreLoggedOnceAMinute(t *testing.T) {
	core, logged := observer.New(zap.WarnLevel)
	counted := map[string]int{}
	w := newWatchErrors(func(kind string) { counted[kind]++ }, zap.New(core))
	now := time.Now()
	w.now = func() time.Time { return now }
	secrets, services := rowScope(kinds.Secret), rowScope(kinds.Service)
	for range 3 {
		w.add(secrets, errors.New("connection refused"))
		w.add(services, errors.New("connection refused"))
	}
	now = now.Add(quiet - time.Second)
	w.add(secrets, errors.New("connection refused"))
	if logged.Len() != 2 || counted[kinds.Secret] != 4 || counted[kinds.Service] != 3 {
		t.Fatalf("%d messages, want one of each kind; counted %v", logged.Len(), counted)
	}
	now = now.Add(time.Second)
	w.add(secrets, errors.New("connection refused"))
	if logged.Len() != 3 {
		t.Fatalf("%d messages after a minute, want three", logged.Len())
	}
}

func rowScope(kind string) scope {
	row, _ := kinds.ByName(kind)
	return scope{kind: row, namespace: "shop"}
}

func TestRoutineEndsAreNotErrors(t *testing.T) {
	core, logged := observer.New(zap.WarnLevel)
	w := newWatchErrors(func(string) { t.Error("counted") }, zap.New(core))
	for _, err := range []error{io.EOF, apierrors.NewResourceExpired("too old")} {
		w.add(rowScope(kinds.Secret), err)
	}
	if logged.Len() != 0 {
		t.Errorf("logged %v", logged.All())
	}
}

func TestWatchErrorsNameTheFix(t *testing.T) {
	resource := schema.GroupResource{Resource: "secrets"}
	for want, err := range map[string]error{
		"verbs list and watch":       apierrors.NewForbidden(resource, "", nil),
		"credentials":                apierrors.NewUnauthorized("no"),
		"does not support v1":        apierrors.NewNotFound(resource, ""),
		"stay in use":                errors.New("connection refused"),
		"secrets in namespace shop:": errors.New("connection refused"),
	} {
		core, logged := observer.New(zap.WarnLevel)
		newWatchErrors(nil, zap.New(core)).add(rowScope(kinds.Secret), err)
		if got := logged.All()[0].Message; !strings.Contains(got, want) {
			t.Errorf("message %q lacks %q", got, want)
		}
	}
}

func TestNoAccess(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	broken := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(broken, []byte("{{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"":         "set the option kubeconfig",
		"/no/such": "reading the kubeconfig /no/such: ",
		broken:     "reading the kubeconfig " + broken,
	} {
		if _, err := New(Options{Kubeconfig: path}, zap.NewNop()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("kubeconfig %q: error %v, want %q in it", path, err, want)
		}
	}
}

func TestNamespaceOfThePod(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "from-pod")
	api := newAPIServer(t)
	c, err := New(Options{Kubeconfig: api.kubeconfig(t)}, zap.NewNop())
	if err != nil || c.Namespace() != "from-pod" {
		t.Errorf("%v, %v", c, err)
	}
}
