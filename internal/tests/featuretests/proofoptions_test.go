package featuretests

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/model/settings"
)

// featureTests is the folder of this package.
const featureTests = "internal/tests/featuretests"

// proofsOfOptions does the same as proofsOfAnnotations for the options of the Caddyfile. Some of them have an effect
// only in a cluster, or in a process of its own, so their tests are in other folders.
var proofsOfOptions = map[string]string{
	"kubeconfig":                  "internal/kube/cluster:TestWatchesCluster",
	"manifests":                   "TestMissingFolder",
	"source":                      "TestHealthOptions",
	"ingress_class":               "TestOptionsOfClasses",
	"ingress_class_by_name":       "TestOptionsOfClasses",
	"controller_name":             "TestOptionsOfClasses",
	"watch_ingress_without_class": "TestOptionsOfClasses",
	"namespaces":                  "internal/kube/cluster:TestNamespaces",
	"namespace_selector":          "test/e2e:TestNamespaceSelector",
	"secrets":                     "test/e2e:TestSecretsByName",
	"disable_catch_all":           "TestDisableCatchAll",
	"snippets":                    "TestSnippets",
	"http":                        "TestCertificateOfAnotherHost",
	"https":                       "TestCertificateOfAnotherHost",
	"http3":                       "TestHTTP3Off",
	"h2c":                         "TestWireOfHTTP1",
	"share_ports":                 "k8singress:TestSharedPorts",
	"health":                      "TestHealthOptions",
	"health_path":                 "TestHealthOptions",
	"health_ready":                "TestHealthOptions",
	"health_metrics":              "TestHealthOptions",
	"admission_webhook":           "TestAdmissionWebhook",
	"nginx_metrics":               "TestNginxMetricsOfTheState",
	"shutdown_delay":              "k8singress:TestEndOfTheProcess",
	"shutdown_timeout":            "k8singress:TestExitWithOpenStreams",
	"configmap":                   "TestServerAndVia",
	"tcp_services":                "TestTCPPortComesAndGoes",
	"udp_services":                "test/e2e:TestTCPAndUDPPorts",
	"stream_bind":                 "TestTCPPortComesAndGoes",
	"service_tcp_ports":           "TestServicePortNotAllowed",
	"service_udp_ports":           "TestStreamResponses",
	"service_port_namespaces":     "TestServicePortNotAllowed",
	"service_ports_per_namespace": "TestLimitsOfServicePorts",
	"service_max_connections":     "TestLimitsOfServicePorts",
	"service_max_idle_timeout":    "TestLimitsOfServicePorts",
	"body_files":                  "TestBodyFilesFull",
	"strict_paths":                "TestStrictPaths",
	"access_log":                  "TestCaddyAccessLog",
	"error_bodies":                "TestErrorBodiesOff",
	"disable_route_metrics":       "TestRouteMetricsOff",
	"via":                         "TestServerAndVia",
	"external_names":              "TestExternalName",
	"reach_allow":                 "TestTenant14",
	"reach_deny":                  "TestTenant14",
	"resolvers":                   "TestCheckHostDNS",
	"zone":                        "TestZoneHints",
	"publish_service":             "internal/kube/status:TestPortsComeAndGo",
	"publish_ports":               "internal/kube/status:TestPortsComeAndGo",
	"publish_address":             "test/e2e:TestStatusAndEvents",
	"publish_nodes":               "internal/kube/status:TestStatusHasTheNodesOfThePods",
	"status":                      "internal/kube/status:TestStatusOff",
	"ssl_passthrough":             "TestPassthrough",
	"default_backend":             "TestDefaultBackend",
	"default_certificate":         "TestCertificateOfAnotherHost",
	"auto_https":                  "TestIssuerOptions",
	"auto_https_except":           "TestIssuerOptions",
	"acme_on_missing_secret":      "TestIssuerOptions",
	"email":                       "test/e2e:TestAccountContact",
	"acme_ca":                     "test/e2e:TestOneOrderForEachNameOnDemand",
	"issuer":                      "TestIssuerOptions",
	"key_type":                    "TestIssuerOptions",
	"hosts_per_namespace":         "TestIssuerOptions",
	"new_hosts_per_day":           "TestTenant05Issuance",
	"check_host_dns":              "TestCheckHostDNS",
	"host_ownership":              "TestTenant03Ownership",
	"host_owner":                  "TestTenant20OlderIngress",
	"acme_solver_namespaces":      "TestTenant03Ownership",
	"chain":                       "TestRespondingChain",
	"stream_chain":                "TestStreamChain",
	"chain_default":               "TestDefaultChain",
	"election":                    "test/e2e:TestElectionOff",
	"election_id":                 "test/e2e:TestRightsOfIngressNginx",
	"election_fallback":           "test/e2e:TestRightsOfIngressNginx",
	"election_namespace":          "k8singress:TestReloadWithAnOptionOfTheSource",
	"election_ttl":                "test/e2e:TestElectionTTL",
}

// optionNames returns the names of all options, from the list of the chart, which is printed from their table.
func optionNames(t *testing.T) (names []string) {
	t.Helper()
	text, err := os.ReadFile("../../../charts/k8singress/files/options.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if name := strings.Fields(line)[0]; name != "#" {
			names = append(names, name)
		}
	}
	return names
}

// fieldsOfOptions maps the names of options to the fields that they set, for tests that set the fields.
func fieldsOfOptions() map[string]string {
	fields := map[string]string{"issuer": "Issuers", "chain": "Chains", "stream_chain": "StreamChains",
		"chain_default": "DefaultChains", "host_owner": "HostOwners"}
	for _, of := range []reflect.Type{reflect.TypeFor[settings.Config](), reflect.TypeFor[settings.Source](),
		reflect.TypeFor[settings.Kubernetes]()} {
		for _, field := range reflect.VisibleFields(of) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			fields[name] = field.Name
		}
	}
	return fields
}
