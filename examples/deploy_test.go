package examples_test

import (
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"

	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/translate/annotations"
	"github.com/k8singress/k8singress/internal/translate/configmap"
)

// deployment holds the objects of one folder of deploy. A field without a name is not in this folder.
type deployment struct {
	caddyfile string
	options   map[string]string
	// workload is a DaemonSet, too, of which only the template is read.
	workload appsv1.Deployment
	services []*corev1.Service
	network  networkingv1.NetworkPolicy
	budget   policyv1.PodDisruptionBudget
}

// TestDeploy checks that the objects of each deployment fit together. test/chart checks that the binary accepts its
// arguments, and that the manifests are up to date; test/e2e runs them.
func TestDeploy(t *testing.T) {
	for _, shape := range []string{"cluster", "namespaces", "least", "hostnetwork"} {
		t.Run(shape, func(t *testing.T) {
			d := readDeployment(t, "../deploy/"+shape+"/k8singress.yaml")
			d.checkLimits(t)
			d.checkEnd(t)
			d.checkSelectors(t)
			d.checkPorts(t)
			if _, problems := configmap.Parse(annotations.Settings{}, d.options); len(problems) > 0 ||
				len(d.options) == 0 {
				t.Errorf("the options %v: %v", d.options, problems)
			}
		})
	}
}

func readDeployment(t *testing.T, file string) *deployment {
	t.Helper()
	d := &deployment{}
	for document := range strings.SplitSeq(read(t, file), "---\n") {
		var kind struct{ Kind string }
		if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
			t.Fatal(err)
		}
		var configMap corev1.ConfigMap
		var service corev1.Service
		into := map[string]any{
			"ConfigMap": &configMap, "Deployment": &d.workload, "DaemonSet": &d.workload, "Service": &service,
			"NetworkPolicy": &d.network, "PodDisruptionBudget": &d.budget,
		}[kind.Kind]
		if into == nil {
			continue
		}
		if err := yaml.Unmarshal([]byte(document), into); err != nil {
			t.Fatalf("%s: %v", kind.Kind, err)
		}
		switch text, found := configMap.Data["Caddyfile"]; {
		case found:
			d.caddyfile = text
		case kind.Kind == "ConfigMap":
			d.options = configMap.Data
		case kind.Kind == "Service":
			d.services = append(d.services, &service)
		}
	}
	return d
}

// adapted adapts the Caddyfile, and returns the admin address and the options in the result.
func (d *deployment) adapted(t *testing.T) (admin string, options settings.Config) {
	t.Helper()
	config, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(d.caddyfile),
		map[string]any{"filename": "Caddyfile"})
	if err != nil || len(warnings) > 0 {
		t.Fatalf("adapting: error %v, warnings %v", err, warnings)
	}
	var whole struct {
		Admin caddy.AdminConfig
		Apps  struct{ K8singress settings.Config }
	}
	if err := yaml.Unmarshal(config, &whole); err != nil {
		t.Fatal(err)
	}
	return whole.Admin.Listen, whole.Apps.K8singress.WithDefaults()
}

func (d *deployment) container() corev1.Container { return d.workload.Spec.Template.Spec.Containers[0] }

// checkLimits checks that every resource of a pod except CPU time is limited, and that no other pod can reach the
// admin API.
func (d *deployment) checkLimits(t *testing.T) {
	t.Helper()
	r := d.container().Resources
	if r.Limits.Memory().IsZero() || r.Requests.Cpu().IsZero() || r.Requests.Memory().IsZero() {
		t.Errorf("the resources are %+v", r)
	}
	scratch := map[string]int64{}
	for _, v := range d.workload.Spec.Template.Spec.Volumes {
		if v.EmptyDir != nil && v.EmptyDir.SizeLimit == nil {
			t.Errorf("the volume %s has no limit", v.Name)
		} else if v.EmptyDir != nil {
			scratch[v.Name] = v.EmptyDir.SizeLimit.Value()
		}
	}
	mounted := map[string]int64{}
	for _, m := range d.container().VolumeMounts {
		if !m.ReadOnly {
			mounted[m.MountPath] = scratch[m.Name]
		}
	}
	admin, options := d.adapted(t)
	if files := options.BodyFiles; files == 0 || files >= mounted["/tmp"] {
		t.Errorf("the files of bodies have %d bytes, and their volume %d", files, mounted["/tmp"])
	}
	if admin != "unix//run/caddy/admin.sock|0600" || mounted["/run/caddy"] == 0 {
		t.Errorf("the admin API is at %s, and the folder for it has %d bytes", admin, mounted["/run/caddy"])
	}
}

// checkEnd checks that the kubelet gives a pod enough time to finish its requests.
func (d *deployment) checkEnd(t *testing.T) {
	t.Helper()
	_, o := d.adapted(t)
	grace := time.Duration(*d.workload.Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second
	if end := time.Duration(o.ShutdownDelay + o.ShutdownTimeout); o.ShutdownDelay == 0 || grace <= end {
		t.Errorf("the pod has %v to end, and may need %v", grace, end)
	}
}

// checkSelectors checks that every selector of pods matches the pods of this deployment.
func (d *deployment) checkSelectors(t *testing.T) {
	t.Helper()
	labels := d.workload.Spec.Template.Labels
	selectors := map[string]map[string]string{"workload": d.workload.Spec.Selector.MatchLabels}
	for _, s := range d.services {
		selectors["Service "+s.Name] = s.Spec.Selector
	}
	if d.network.Name != "" {
		selectors["PodDisruptionBudget"] = d.budget.Spec.Selector.MatchLabels
		selectors["NetworkPolicy"] = d.network.Spec.PodSelector.MatchLabels
	}
	for what, selector := range selectors {
		both := maps.Clone(labels)
		maps.Copy(both, selector)
		if len(selector) == 0 || !maps.Equal(both, labels) {
			t.Errorf("the %s selects %v, and the pods have %v", what, selector, labels)
		}
	}
}

// checkPorts checks that the Services point to ports of the pods, and that the probes use ports on which Caddy
// responds. The NetworkPolicy opens the ports of the Services to everyone, and the ports of probes to some peers.
func (d *deployment) checkPorts(t *testing.T) {
	t.Helper()
	_, o := d.adapted(t)
	ports := map[string]int32{}
	for _, p := range d.container().Ports {
		ports[p.Name] = p.ContainerPort
	}
	for name, address := range map[string]string{"http": o.HTTP[0], "https": o.HTTPS[0]} {
		if ":"+strconv.Itoa(int(ports[name])) != address {
			t.Errorf("the port %s of the container is %d, and Caddy listens on %s", name, ports[name], address)
		}
	}
	asked := d.portsOfServices(t, ports)
	probed := map[int32]bool{}
	for path, probe := range map[string]*corev1.Probe{"/readyz": d.container().ReadinessProbe,
		"/healthz": d.container().LivenessProbe} {
		if probed[probe.HTTPGet.Port.IntVal] = true; probe.HTTPGet.Path != path || probe.HTTPGet.Port.IntVal != 10254 {
			t.Errorf("the probe of %s asks %s at %s", path, probe.HTTPGet.Path, probe.HTTPGet.Port.String())
		}
	}
	if d.network.Name == "" {
		return
	}
	everyone, some := map[int32]bool{}, map[int32]bool{}
	for _, rule := range d.network.Spec.Ingress {
		into := everyone
		if len(rule.From) > 0 {
			into = some
		}
		for _, p := range rule.Ports {
			into[p.Port.IntVal] = true
		}
	}
	if !maps.Equal(everyone, asked) || !maps.Equal(some, probed) {
		t.Errorf("the NetworkPolicy opens %v to everyone, and %v to some; the Services need %v, and probes %v",
			everyone, some, asked, probed)
	}
}

// portsOfServices returns the ports of the pods to which the Services lead. ports maps names of the container's ports
// to numbers.
func (d *deployment) portsOfServices(t *testing.T, ports map[string]int32) map[int32]bool {
	t.Helper()
	asked := map[int32]bool{}
	for _, s := range d.services {
		for _, p := range s.Spec.Ports {
			if asked[ports[p.TargetPort.StrVal]] = true; asked[0] {
				t.Errorf("the Service %s leads to the port %s, which the container lacks", s.Name, p.TargetPort.StrVal)
			}
		}
	}
	return asked
}
