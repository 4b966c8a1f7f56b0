package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/k8singress/k8singress/test/testbed/kubelet"
	"github.com/k8singress/k8singress/test/testbed/network"
	"github.com/k8singress/k8singress/test/testbed/pki"
	"github.com/k8singress/k8singress/test/testbed/services"
)

// upInside runs as process 1 of the cluster.
func upInside(ctx context.Context, args []string) error {
	s, err := parseSettings(args)
	if err != nil {
		return err
	}
	if err := mountProc(); err != nil {
		return err
	}
	if err := network.SetUp(); err != nil {
		return err
	}
	if err := writeCredentials(s); err != nil {
		return err
	}
	return runCluster(ctx, s)
}

// mountProc mounts /proc for the new PID namespace. The inherited mount shows the processes outside.
func mountProc() error {
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	return nil
}

func writeCredentials(s settings) error {
	authority, err := pki.NewAuthority(filepath.Join(s.dir, "pki"))
	if err != nil {
		return err
	}
	nodes := []string{"localhost", "127.0.0.1"}
	for i := range s.nodes {
		nodes = append(nodes, network.NodeAddress(i))
	}
	requests := []pki.Request{
		{Name: "apiserver", User: "kube-apiserver", Hosts: []string{
			"localhost", "127.0.0.1", network.ControlPlaneIP, services.APIServerIP,
			"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		}},
		// The testbed's own components have all rights. RBAC restricts only pods.
		{Name: "admin", User: "testbed-admin", Groups: []string{"system:masters"}},
		{Name: "kubelet", User: "testbed-kubelet", Hosts: nodes},
	}
	for _, request := range requests {
		if err := authority.Issue(request); err != nil {
			return err
		}
	}
	if err := authority.IssueTokenKey("sa"); err != nil {
		return err
	}
	return writeKubeconfig(filepath.Join(s.dir, "kubeconfig"), authority)
}

// writeKubeconfig writes a kubeconfig that contains its certificates and its key.
func writeKubeconfig(path string, authority *pki.Authority) error {
	config := clientcmdapi.NewConfig()
	cluster, user := clientcmdapi.NewCluster(), clientcmdapi.NewAuthInfo()
	cluster.Server = "https://127.0.0.1:" + apiPort
	for file, data := range map[string]*[]byte{
		"ca.crt":    &cluster.CertificateAuthorityData,
		"admin.crt": &user.ClientCertificateData,
		"admin.key": &user.ClientKeyData,
	} {
		bytes, err := os.ReadFile(authority.Path(file))
		if err != nil {
			return err
		}
		*data = bytes
	}
	config.Clusters["testbed"], config.AuthInfos["admin"] = cluster, user
	config.Contexts["testbed"] = &clientcmdapi.Context{Cluster: "testbed", AuthInfo: "admin"}
	config.CurrentContext = "testbed"
	return clientcmd.WriteToFile(*config, path)
}

// runCluster runs the cluster until ctx ends. Then it ends the pods, the services and the control plane, in this order.
func runCluster(ctx context.Context, s settings) error {
	client, err := newClient(s.dir)
	if err != nil {
		return err
	}
	images, err := kubelet.NewImages(s.rules, filepath.Join(s.dir, "images"))
	if err != nil {
		return err
	}
	serving, err := kubeletTLS(filepath.Join(s.dir, "pki"))
	if err != nil {
		return err
	}
	plane := &controlPlane{logs: filepath.Join(s.dir, "logs")}
	defer plane.stop()
	if err := plane.start(ctx, components(s.dir), client); err != nil {
		return ignoreStop(ctx, err)
	}
	proxy, err := services.New(client)
	if err != nil {
		return err
	}
	k := &kubelet.Kubelet{
		Client: client, Dir: filepath.Join(s.dir, "pods"), Images: images, Nodes: s.nodes, TLS: serving,
	}
	go proxy.Run(ctx)
	return ignoreStop(ctx, k.Run(ctx, func() { fmt.Fprintln(os.Stdout, "ready") }))
}

// ignoreStop returns nil if ctx has ended, because errors during the shutdown are expected.
func ignoreStop(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func newClient(dir string) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	if err != nil {
		return nil, err
	}
	// The API server limits its clients itself.
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	return kubernetes.NewForConfig(config)
}

func kubeletTLS(dir string) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "kubelet.crt"), filepath.Join(dir, "kubelet.key"))
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		return nil, err
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(ca)
	return &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert,
	}, nil
}
