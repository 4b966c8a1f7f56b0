package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"

	"github.com/k8singress/k8singress/test/testbed/network"
)

const (
	apiPort = "16443"
	etcdURL = "http://127.0.0.1:2379"
)

// controllers lists the controllers that workloads and Services need. Other controllers would only use memory.
var controllers = []string{
	"serviceaccount-token-controller",
	"serviceaccount-controller",
	"root-ca-certificate-publisher-controller",
	"namespace-controller",
	"garbage-collector-controller",
	"deployment-controller",
	"replicaset-controller",
	"daemonset-controller",
	"statefulset-controller",
	"job-controller",
	"endpoints-controller",
	"endpointslice-controller",
	"endpointslice-mirroring-controller",
	"clusterrole-aggregation-controller",
	"disruption-controller",
}

// component is a process of the control plane. It runs this binary with the name as subcommand.
type component struct {
	name string
	// needsAPI reports whether it must be started after the API server.
	needsAPI bool
	flags    []string
}

// upstream maps subcommands to the commands of Kubernetes.
var upstream = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllermanager.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
}

func runUpstream(name string) int {
	command := upstream[name]()
	command.SetArgs(os.Args[2:])
	return cli.Run(command)
}

// components returns the control plane in the order in which it is started.
func components(dir string) []component {
	kubeconfig := "--kubeconfig=" + filepath.Join(dir, "kubeconfig")
	pki := func(file string) string { return filepath.Join(dir, "pki", file) }
	return []component{
		{name: "etcd", flags: []string{filepath.Join(dir, "etcd")}},
		{name: "kube-apiserver", flags: []string{
			"--etcd-servers=" + etcdURL,
			"--bind-address=0.0.0.0",
			"--secure-port=" + apiPort,
			"--advertise-address=" + network.ControlPlaneIP,
			"--service-cluster-ip-range=" + network.ServiceCIDR,
			"--tls-cert-file=" + pki("apiserver.crt"),
			"--tls-private-key-file=" + pki("apiserver.key"),
			"--client-ca-file=" + pki("ca.crt"),
			"--kubelet-client-certificate=" + pki("admin.crt"),
			"--kubelet-client-key=" + pki("admin.key"),
			"--kubelet-certificate-authority=" + pki("ca.crt"),
			"--kubelet-preferred-address-types=InternalIP",
			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file=" + pki("sa.pub"),
			"--service-account-signing-key-file=" + pki("sa.key"),
			"--authorization-mode=RBAC",
			"--allow-privileged=true",
			// This plugin makes new nodes wait for the node lifecycle controller, which does not run here.
			"--disable-admission-plugins=TaintNodesByCondition",
			"--profiling=false",
		}},
		{name: "kube-controller-manager", needsAPI: true, flags: []string{
			kubeconfig,
			"--controllers=" + strings.Join(controllers, ","),
			"--service-account-private-key-file=" + pki("sa.key"),
			"--root-ca-file=" + pki("ca.crt"),
			"--leader-elect=false",
			"--secure-port=0",
			"--endpointslice-updates-batch-period=0s",
			"--endpoint-updates-batch-period=0s",
			"--kube-api-qps=500", "--kube-api-burst=1000",
		}},
		{name: "kube-scheduler", needsAPI: true, flags: []string{
			kubeconfig,
			"--leader-elect=false",
			"--secure-port=0",
			"--kube-api-qps=500", "--kube-api-burst=1000",
		}},
	}
}

// runEtcd runs one etcd member until ctx ends. The argument is the folder for its data.
func runEtcd(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("a folder is needed")
	}
	config := embed.NewConfig()
	config.Dir = args[0]
	config.LogLevel = "warn"
	// The data is not needed after the cluster has ended.
	config.UnsafeNoFsync = true
	address, err := url.Parse(etcdURL)
	if err != nil {
		return err
	}
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{*address}, []url.URL{*address}
	server, err := embed.StartEtcd(config)
	if err != nil {
		return fmt.Errorf("starting etcd: %w", err)
	}
	defer server.Close()
	select {
	case <-ctx.Done():
		return nil
	case err := <-server.Err():
		return err
	}
}
