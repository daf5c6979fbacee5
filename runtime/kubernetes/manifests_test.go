//go:build kubernetes

package kubernetes

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
)

const manifests = "../../packaging/kubernetes"

// objects decodes the manifests strictly: a field that the API doesn't have is an error.
func objects(t *testing.T) []apiruntime.Object {
	t.Helper()
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	files, err := filepath.Glob(manifests + "/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []apiruntime.Object
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for doc := range bytes.SplitSeq(text, []byte("\n---\n")) {
			o, _, err := decoder.Decode(doc, nil, nil)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			all = append(all, o)
		}
	}
	return all
}

// find returns the one object of a type.
func find[T apiruntime.Object](t *testing.T) T {
	t.Helper()
	var found []T
	for _, o := range objects(t) {
		if v, ok := o.(T); ok {
			found = append(found, v)
		}
	}
	if len(found) != 1 {
		t.Fatalf("there are %d of %T", len(found), found)
	}
	return found[0]
}

// TestRights: the Role grants the verbs that the driver checks for, and no other.
func TestRights(t *testing.T) {
	var want, got []string
	for _, r := range needed {
		want = append(want, r.Verb+" "+r.Group+"/"+strings.TrimSuffix(r.Resource+"/"+r.Subresource, "/"))
	}
	for _, rule := range find[*rbacv1.Role](t).Rules {
		for _, verb := range rule.Verbs {
			got = append(got, verb+" "+rule.APIGroups[0]+"/"+rule.Resources[0])
		}
	}
	slices.Sort(want)
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("the Role grants\n%q, want\n%q", got, want)
	}
}

// TestManifests: each file that the kustomization names is there and the reverse, the policy is
// about the pods of the driver and denies all, and the metric is one that the bridge exports.
func TestManifests(t *testing.T) {
	text, err := os.ReadFile(manifests + "/kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(manifests + "/*.yaml")
	for _, file := range files {
		if name := filepath.Base(file); name != "kustomization.yaml" && !strings.Contains(string(text),
			"- "+name+"\n") {
			t.Errorf("the kustomization doesn't name %s", name)
		}
	}
	policy := find[*networkingv1.NetworkPolicy](t).Spec
	if policy.PodSelector.MatchLabels[labelApp] != app || len(policy.PolicyTypes) != 2 ||
		len(policy.Egress) != 0 ||
		len(policy.Ingress) != 0 {
		t.Errorf("the policy doesn't deny all to the driver's pods: %+v", policy)
	}
	metric := find[*autoscalingv2.HorizontalPodAutoscaler](t).Spec.Metrics[0].Pods.Metric.Name
	source, err := os.ReadFile("../../bridge/streamable/metrics.go")
	if err != nil {
		t.Fatal(err)
	}
	name, ok := strings.CutPrefix(metric, "mcp_bridge_http_")
	if !ok || !strings.Contains(string(source), fmt.Sprintf("{%q, ", name)) {
		t.Errorf("the bridge doesn't export %s", metric)
	}
}
