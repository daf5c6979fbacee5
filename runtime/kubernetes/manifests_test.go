//go:build kubernetes

package kubernetes

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"

	"go.yaml.in/yaml/v3"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/mcp-bridge/mcp-bridge/bridge/client"
)

const manifests = "../../packaging/kubernetes"

// objects decodes the manifests of a folder strictly: a field that the API doesn't have is an
// error. Render, which may be nil, makes a manifest of a template.
func objects(t *testing.T, folder string, render func(string) string) []apiruntime.Object {
	t.Helper()
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	files, err := filepath.Glob(folder + "/*.yaml")
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
		if render != nil {
			text = []byte(render(string(text)))
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
	for _, o := range objects(t, manifests, nil) {
		if v, ok := o.(T); ok {
			found = append(found, v)
		}
	}
	if len(found) != 1 {
		t.Fatalf("there are %d of %T", len(found), found)
	}
	return found[0]
}

// TestRights: the Roles grant the verbs that the driver checks for, and no other.
func TestRights(t *testing.T) {
	grants(t, find[*rbacv1.Role](t), needed)
	var role *rbacv1.Role
	for _, o := range objects(t, manifests+"/agent-sandbox", nil) {
		if r, ok := o.(*rbacv1.Role); ok {
			role = r
		}
	}
	grants(t, role, append(slices.Clone(claimRights), watchClaims))
}

// grants checks that a Role grants these rights and no others.
func grants(t *testing.T, role *rbacv1.Role, rights []authorizationv1.ResourceAttributes) {
	t.Helper()
	var want, got []string
	for _, r := range rights {
		want = append(want, r.Verb+" "+r.Group+"/"+strings.TrimSuffix(r.Resource+"/"+r.Subresource, "/"))
	}
	for _, rule := range role.Rules {
		for _, verb := range rule.Verbs {
			got = append(got, verb+" "+rule.APIGroups[0]+"/"+rule.Resources[0])
		}
	}
	slices.Sort(want)
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("the Role %s grants\n%q, want\n%q", role.Name, got, want)
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

// TestNoServiceLinks: a node doesn't give bridges the variables of services. Those of the service
// that is named as the program begin as its settings do, and it takes no unknown ones.
func TestNoServiceLinks(t *testing.T) {
	if links := find[*appsv1.Deployment](t).Spec.Template.Spec.EnableServiceLinks; links == nil || *links {
		t.Error("the bridges get variables such as MCP_BRIDGE_PORT, with which they don't start")
	}
}

// TestStateIsTheBridges: what the bridge reads is in a folder that the first container has made.
// Everybody can write to the root of a volume, and the bridge believes no file below such a folder.
func TestStateIsTheBridges(t *testing.T) {
	spec := find[*appsv1.Deployment](t).Spec.Template.Spec
	for _, m := range spec.Containers[0].VolumeMounts {
		if m.SubPath == "" {
			t.Errorf("the bridge has the root of the volume %s at %s", m.Name, m.MountPath)
		}
		if made := spec.InitContainers[0].Args[0]; !strings.Contains(made, "mkdir -p "+m.MountPath+"/") {
			t.Errorf("the first container doesn't make %s", m.MountPath)
		}
	}
	for _, e := range spec.Containers[0].Env {
		if strings.HasPrefix(e.Value, "/state") &&
			!strings.HasPrefix(e.Value, spec.Containers[0].VolumeMounts[0].MountPath) {
			t.Errorf("%s is %s, which the bridge hasn't got", e.Name, e.Value)
		}
	}
}

// TestReplicas: each bridge has a name of its own, of the form that ids take: two whose ids don't
// tell them apart would each answer for the other's sandboxes that there are none.
func TestReplicas(t *testing.T) {
	deployment := find[*appsv1.Deployment](t)
	for _, e := range deployment.Spec.Template.Spec.Containers[0].Env {
		if e.Name == "MCP_BRIDGE_REPLICA" && e.ValueFrom != nil &&
			e.ValueFrom.FieldRef.FieldPath == "metadata.name" {
			if name := client.Replica(deployment.Name + "-5d4f8c7b9d-x2x9z"); !name.Valid() {
				t.Errorf("a pod's name such as %s can't be a replica's", name)
			}
			return
		}
	}
	t.Error("the bridges have no names of their own")
}

// TestChart: with its usual values the Helm chart makes the objects of the kustomization, and a
// ConfigMap of the servers.
func TestChart(t *testing.T) {
	var values map[string]any
	text, err := os.ReadFile(manifests + "/chart/values.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &values)
	}
	if err != nil {
		t.Fatal(err)
	}
	const pushed = "pushed = \"localhost/frames\"\n"
	values["environments"] = map[string]any{"frames.toml": pushed}
	// Of Helm's functions the templates use three, and they use nothing else of Helm's.
	functions := template.FuncMap{
		"quote":     func(v any) string { return strconv.Quote(fmt.Sprint(v)) },
		"toJson":    func(v any) (string, error) { b, err := json.Marshal(v); return string(b), err },
		"sha256sum": func(s string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(s))) },
	}
	chart := objects(t, manifests+"/chart/templates", func(text string) string {
		var out strings.Builder
		err := template.Must(template.New("").Funcs(functions).Option("missingkey=error").Parse(text)).Execute(&out,
			map[string]any{"Values": values, "Release": map[string]any{"Namespace": "mcp-bridge"}})
		if err != nil {
			t.Fatal(err)
		}
		return out.String()
	})
	made, sums := map[string]bool{}, 0
	show := func(o apiruntime.Object) string {
		if d, ok := o.(*appsv1.Deployment); ok { // in whose place the kustomization names the ConfigMap by its sum
			sums += len(d.Spec.Template.Annotations)
			d.Spec.Template.Annotations = nil
		}
		b, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		// which the kustomization adds
		return strings.ReplaceAll(string(b), "mcp-bridge-kubernetes:latest", "mcp-bridge-kubernetes")
	}
	servers := 0
	for _, o := range chart {
		if c, ok := o.(*corev1.ConfigMap); ok {
			servers++
			if c.Data["frames.toml"] != pushed || c.Data["team.json"] == "" {
				t.Errorf("the chart's ConfigMap has %q", c.Data)
			}
			continue
		}
		made[show(o)] = true
	}
	for _, o := range objects(t, manifests, nil) {
		if _, ok := o.(*corev1.Namespace); ok { // helm makes it
			continue
		}
		if text := show(o); !made[text] {
			t.Errorf("the chart doesn't make %s", text)
		}
		delete(made, show(o))
	}
	if len(made) != 0 || servers != 1 || sums != 1 {
		t.Errorf("the chart makes %d ConfigMaps with %d sums, and besides %v", servers, sums, made)
	}
}
