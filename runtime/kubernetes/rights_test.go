//go:build kubernetes

package kubernetes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	client "k8s.io/client-go/kubernetes"
)

// nodeDir returns the folder of the node's files, of which KUBECONFIG is one.
func nodeDir() string { return filepath.Dir(os.Getenv("KUBECONFIG")) }

// as returns a driver of the same cluster for another user, of which the node has a kubeconfig.
func as(t *testing.T, user string) *Driver {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(nodeDir(), user+".config"))
	d := New(Config{})
	t.Cleanup(func() { d.Close() })
	return d
}

// grantLeast gives the user least the Role of the manifests.
func grantLeast(t *testing.T, cli client.Interface, namespace string) {
	t.Helper()
	role := find[*rbacv1.Role](t)
	role.Namespace = namespace
	api := cli.RbacV1()
	if _, err := api.Roles(namespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "least"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "least"}}}
	if _, err := api.RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestClusterRights: an account with the Role of the manifests alone runs code, and one without is
// told what it lacks.
func TestClusterRights(t *testing.T) {
	admin := realDriver(t)
	c, err := admin.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	grantLeast(t, c.cli, c.namespace)
	_, err = as(t, "nothing").Facts(t.Context())
	said(t, err, "may not do in namespace default: create pods, get pods", "kubectl apply -k")
	d := as(t, "least")
	g := realTarget(d)(t)
	var out strings.Builder
	std := silent()
	std.Stdout = &out
	if exit, err := d.Run(t.Context(), g.Spec("print(6 * 7)"), std); err != nil || exit.Code != 0 ||
		out.String() != "42\n" {
		t.Errorf("with the least rights: %+v, %q, %v", exit, out.String(), err)
	}
	if _, err := d.Orphans(t.Context(), g.Owner); err != nil {
		t.Error(err)
	}
}
