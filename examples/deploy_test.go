package examples_test

import (
	"os"
	"slices"
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

	"github.com/k8singress/k8singress/internal/configmap"
	"github.com/k8singress/k8singress/internal/settings"
)

// deployment is what deploy/controller.yaml holds.
type deployment struct {
	class      networkingv1.IngressClass
	configMaps map[string]corev1.ConfigMap
	workload   appsv1.Deployment
	service    corev1.Service
	network    networkingv1.NetworkPolicy
	budget     policyv1.PodDisruptionBudget
}

// readDeployment refuses fields that there are not, and kinds that nobody expects.
func readDeployment(t *testing.T) *deployment {
	t.Helper()
	data, err := os.ReadFile("../deploy/controller.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d := &deployment{configMaps: map[string]corev1.ConfigMap{}}
	for document := range strings.SplitSeq(string(data), "---\n") {
		var kind struct{ Kind string }
		if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
			t.Fatal(err)
		}
		var configMap corev1.ConfigMap
		into := map[string]any{
			"IngressClass": &d.class, "ConfigMap": &configMap, "Deployment": &d.workload, "Service": &d.service,
			"NetworkPolicy": &d.network, "PodDisruptionBudget": &d.budget,
		}[kind.Kind]
		if into == nil {
			t.Fatalf("there is an unknown %q", kind.Kind)
		}
		if err := yaml.UnmarshalStrict([]byte(document), into); err != nil {
			t.Fatalf("%s: %v", kind.Kind, err)
		}
		if kind.Kind == "ConfigMap" {
			d.configMaps[configMap.Namespace+"/"+configMap.Name] = configMap
		}
	}
	return d
}

// adapted is what the Caddyfile of the deployment becomes.
type adapted struct {
	Admin caddy.AdminConfig
	Apps  struct {
		K8singress settings.Config
		HTTP       struct {
			Servers map[string]struct{ Listen []string }
		}
	}
}

func (d *deployment) adapted(t *testing.T) adapted {
	t.Helper()
	text := d.configMaps["k8singress/caddyfile"].Data["Caddyfile"]
	config, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": "Caddyfile"})
	if err != nil || len(warnings) > 0 {
		t.Fatalf("adapting: error %v, warnings %v", err, warnings)
	}
	var whole adapted
	if err := yaml.Unmarshal(config, &whole); err != nil {
		t.Fatal(err)
	}
	return whole
}

// options are those of the Caddyfile.
func (d *deployment) options(t *testing.T) settings.Config {
	t.Helper()
	return d.adapted(t).Apps.K8singress.WithDefaults()
}

// TestDeploymentForMore: the lines of the Caddyfile that are there to be turned on are ones that Caddy takes.
func TestDeploymentForMore(t *testing.T) {
	d := readDeployment(t)
	file := d.configMaps["k8singress/caddyfile"]
	for _, line := range []string{
		"tcp_services k8singress/tcp-services", "udp_services k8singress/udp-services", "publish_ports", "ssl_passthrough",
	} {
		before := file.Data["Caddyfile"]
		if file.Data["Caddyfile"] = strings.Replace(before, "\t# "+line+"\n", "\t"+line+"\n", 1); file.Data["Caddyfile"] == before {
			t.Errorf("there is no line to turn on %s", line)
		}
	}
	o := d.options(t)
	if o.TCPServices.String() != "k8singress/tcp-services" || o.UDPServices.String() != "k8singress/udp-services" ||
		!o.PublishPorts || !o.SSLPassthrough {
		t.Errorf("the options are %+v", o)
	}
}

// TestDeploymentMetrics: the site for Prometheus, once it is turned on, has the port of the line in the NetworkPolicy.
func TestDeploymentMetrics(t *testing.T) {
	d := readDeployment(t)
	file := d.configMaps["k8singress/caddyfile"]
	before, site, found := strings.Cut(file.Data["Caddyfile"], "\n# http://")
	if !found {
		t.Fatal("there is no such site")
	}
	file.Data["Caddyfile"] = before + "\nhttp://" + strings.ReplaceAll(site, "\n# ", "\n")
	var listens []string
	for _, server := range d.adapted(t).Apps.HTTP.Servers {
		if slices.Contains(server.Listen, ":9180") {
			listens = append(listens, server.Listen...)
		}
	}
	if len(listens) != 1 || !strings.Contains(read(t, "../deploy/controller.yaml"), "#   ports: [{port: 9180}]") {
		t.Errorf("it listens on %q", listens)
	}
}

// TestDeploymentLimits: nothing of a pod is without a bound but processor time, and nobody but the pod itself reaches the admin API.
func TestDeploymentLimits(t *testing.T) {
	d := readDeployment(t)
	pod := d.workload.Spec.Template.Spec
	container := pod.Containers[0]
	if container.Resources.Limits.Memory().IsZero() || container.Resources.Requests.Cpu().IsZero() || container.Resources.Requests.Memory().IsZero() {
		t.Errorf("the resources are %+v", container.Resources)
	}
	scratch := map[string]*corev1.EmptyDirVolumeSource{}
	for _, v := range pod.Volumes {
		if v.EmptyDir == nil {
			continue
		}
		if scratch[v.Name] = v.EmptyDir; v.EmptyDir.SizeLimit == nil {
			t.Errorf("the volume %s has no limit", v.Name)
		}
	}
	if files, most := d.options(t).BodyFiles, scratch["tmp"].SizeLimit.Value(); files == 0 || files >= most {
		t.Errorf("the files of bodies have %d bytes, and their volume %d", files, most)
	}
	admin := d.adapted(t).Admin.Listen
	folder := ""
	for _, m := range container.VolumeMounts {
		if m.Name == "run" && !m.ReadOnly {
			folder = m.MountPath
		}
	}
	if folder == "" || scratch["run"] == nil || admin != "unix/"+folder+"/admin.sock|0600" {
		t.Errorf("the admin API is at %s, and %q is for it", admin, folder)
	}
}

// TestDeploymentNetwork: all that the Service and the probes ask for passes the NetworkPolicy, and nothing else does.
func TestDeploymentNetwork(t *testing.T) {
	d := readDeployment(t)
	if len(d.network.Spec.Ingress) != 1 || len(d.network.Spec.Ingress[0].From) > 0 || len(d.network.Spec.Egress) > 0 {
		t.Fatalf("it says %+v", d.network.Spec)
	}
	var open []string
	for _, p := range d.network.Spec.Ingress[0].Ports {
		name := p.Port.String()
		if p.Protocol != nil {
			name += "/" + string(*p.Protocol)
		}
		open = append(open, name)
	}
	if got := strings.Join(open, " "); got != "http https 443/UDP health" {
		t.Errorf("open are %s", got)
	}
}

// TestDeployment holds that the parts of deploy/controller.yaml fit each other.
func TestDeployment(t *testing.T) {
	d := readDeployment(t)
	o := d.options(t)
	pod := d.workload.Spec.Template.Spec
	if d.class.Spec.Controller != o.ControllerName || d.class.Name != o.IngressClass {
		t.Errorf("the class is %s of %s, and the Caddyfile serves %s of %s",
			d.class.Name, d.class.Spec.Controller, o.IngressClass, o.ControllerName)
	}
	if !strings.Contains(read(t, "../deploy/rbac.yaml"), "kind: ServiceAccount\nmetadata:\n  name: "+pod.ServiceAccountName+"\n") {
		t.Errorf("rbac.yaml has no ServiceAccount %s", pod.ServiceAccountName)
	}
	if o.PublishService.String() != d.service.Namespace+"/"+d.service.Name {
		t.Errorf("publish_service is %s", o.PublishService)
	}
	data := d.configMaps[o.ConfigMap.String()].Data
	if _, problems := configmap.Parse(data); len(problems) > 0 || len(data) == 0 {
		t.Errorf("the options of %s: %v", o.ConfigMap, problems)
	}
	grace := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second
	if end := time.Duration(o.ShutdownDelay + o.ShutdownTimeout); o.ShutdownDelay == 0 || grace <= end {
		t.Errorf("the pod has %v to end, and may need %v", grace, end)
	}
}

// TestDeploymentPorts: what the Service and the probes ask for is what the Caddyfile listens on.
func TestDeploymentPorts(t *testing.T) {
	d := readDeployment(t)
	o := d.options(t)
	container := d.workload.Spec.Template.Spec.Containers[0]
	ports := map[string]int32{}
	for _, p := range container.Ports {
		ports[p.Name] = p.ContainerPort
	}
	for name, address := range map[string]string{"http": o.HTTP[0], "https": o.HTTPS[0], "health": o.Health} {
		if ":"+strconv.Itoa(int(ports[name])) != address {
			t.Errorf("the port %s of the container is %d, and Caddy listens on %s", name, ports[name], address)
		}
	}
	for _, p := range d.service.Spec.Ports {
		if ports[p.TargetPort.StrVal] == 0 {
			t.Errorf("the Service leads to the port %s, which the container has not", p.TargetPort.StrVal)
		}
	}
	for path, probe := range map[string]*corev1.Probe{"/readyz": container.ReadinessProbe, "/healthz": container.LivenessProbe} {
		if probe.HTTPGet.Path != path || probe.HTTPGet.Port.StrVal != "health" {
			t.Errorf("the probe of %s asks %s at %s", path, probe.HTTPGet.Path, probe.HTTPGet.Port.StrVal)
		}
	}
	labels := d.workload.Spec.Template.Labels
	for what, selector := range map[string]map[string]string{
		"Service": d.service.Spec.Selector, "Deployment": d.workload.Spec.Selector.MatchLabels,
		"PodDisruptionBudget": d.budget.Spec.Selector.MatchLabels, "NetworkPolicy": d.network.Spec.PodSelector.MatchLabels,
	} {
		if len(selector) == 0 || selector["app"] != labels["app"] {
			t.Errorf("the %s selects %v, and the pods have %v", what, selector, labels)
		}
	}
}
