package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/k8singress/k8singress/test/harness"
)

// TestContainers checks how the testbed handles images and securityContexts.
func TestContainers(t *testing.T) {
	c := newCluster(t)
	content, err := os.ReadFile("testdata/containers.yaml")
	c.must(err)
	var pods []*corev1.Pod
	for _, object := range c.objects(content) {
		switch object := object.(type) {
		case *corev1.Secret:
			_, err := c.CoreV1().Secrets(c.namespace).Create(t.Context(), object, metav1.CreateOptions{})
			c.must(err)
		case *corev1.Pod:
			pod, err := c.CoreV1().Pods(c.namespace).Create(t.Context(), object, metav1.CreateOptions{})
			c.must(err)
			pods = append(pods, pod)
		}
	}
	for _, pod := range pods {
		t.Run(pod.Name, func(t *testing.T) {
			if pod.Annotations["users"] != "" && harness.OneUser() {
				t.Skip(
					"LEFT OUT: other users than root, and capabilities of files, which the cluster has only where " +
						"root runs it")
			}
			c.in(t).awaitDone(pod)
		})
	}
}

func (c *cluster) objects(content []byte) (objects []runtime.Object) {
	c.Helper()
	documents := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(content)))
	defer documents.Close()
	for {
		text := make([]byte, len(content))
		n, err := documents.Read(text)
		if errors.Is(err, io.EOF) {
			return objects
		}
		c.must(err)
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(text[:n], nil, nil)
		c.must(err)
		objects = append(objects, object)
	}
}

// awaitDone waits until the log and the status of a pod match its annotations.
func (c *cluster) awaitDone(pod *corev1.Pod) {
	c.Helper()
	if pod.Annotations["prints"] == "" && pod.Annotations["status"] == "" {
		c.Fatalf("the pod %s expects nothing: give it the annotation prints or status", pod.Name)
	}
	pods := c.CoreV1().Pods(c.namespace)
	c.await("what is expected of the pod", func() error {
		now, err := pods.Get(c.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		status, err := json.Marshal(now.Status)
		if err != nil {
			return err
		}
		if want := pod.Annotations["status"]; !strings.Contains(string(status), want) {
			return fmt.Errorf("the status has no %s: %s", want, status)
		}
		return c.checkPrinted(pod)
	})
}

// checkPrinted compares the log of a pod word by word and ignores white space.
func (c *cluster) checkPrinted(pod *corev1.Pod) error {
	wanted := pod.Annotations["prints"]
	if wanted == "" {
		return nil
	}
	log, err := c.CoreV1().Pods(c.namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(c.Context())
	if err != nil {
		return err
	}
	words := strings.Join(strings.Fields(string(log)), " ")
	for line := range strings.Lines(wanted) {
		if line = strings.TrimSpace(line); !strings.Contains(words, line) {
			return fmt.Errorf("the log has no %q: %s", line, log)
		}
	}
	return nil
}
