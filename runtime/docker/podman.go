package docker

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"

	"github.com/docker/docker/client"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// What podman's imitation of docker's API doesn't tell, or tells wrongly, is asked of podman's own
// API, which is on the same socket: whether podman is rootless, what limits hold, and how a
// container ended.

// podmanInfo is podman's own account of itself.
type podmanInfo struct {
	Host struct {
		CgroupVersion     string
		CgroupControllers []string
		OCIRuntime        struct{ Name string }
		Security          struct {
			Rootless        bool
			SeccompEnabled  bool
			AppArmorEnabled bool
			SELinuxEnabled  bool
		}
	}
}

// libpod asks podman's own API, in the oldest version that podman 4 and 5 have.
func libpod(ctx context.Context, by *http.Client, method, path string, answer any) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+client.DummyHost+"/v4.0.0/libpod"+path,
		http.NoBody)
	if err != nil {
		return err
	}
	resp, err := by.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("podman's own API answers %s", resp.Status)
	}
	return json.NewDecoder(io.LimitReader(resp.Body, maxFile)).Decode(answer)
}

// podmanExit waits for a container's exit code. Podman's imitation of docker's wait looks for an
// event that it may have missed, and then waits for ever. Podman's own wait says nothing before the
// end, so begun is called once the question is on its way, on a connection that is known to stand:
// one by ssh takes longer than some containers live.
func (c *connection) podmanExit(ctx context.Context, id string, begun func()) (int, error) {
	defer begun()
	own := c.dial.Transport()
	own.MaxConnsPerHost = 1
	defer own.CloseIdleConnections()
	by := &http.Client{Transport: own}
	var up any
	if err := libpod(ctx, by, http.MethodGet, "/containers/json?limit=1", &up); err != nil {
		return -1, err
	}
	asked := httptrace.WithClientTrace(ctx,
		&httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { begun() }})
	var code int
	err := libpod(asked, by, http.MethodPost, "/containers/"+id+"/wait?condition=exited&interval=20ms", &code)
	return code, err
}

// facts corrects what podman's docker-compatible account says.
func (p podmanInfo) facts(f runtime.Facts) runtime.Facts {
	h := p.Host
	f.Engine, f.Rootless, f.OCIRuntime = "podman", h.Security.Rootless, h.OCIRuntime.Name
	f.CgroupVersion, f.Enforces = 1, runtime.Enforced{}
	if h.CgroupVersion == "v2" {
		f.CgroupVersion = 2
	}
	switch {
	case f.CgroupVersion == 2 && f.Rootless:
		has := func(controller string) bool { return slices.Contains(h.CgroupControllers, controller) }
		f.Enforces = runtime.Enforced{Memory: has("memory"), PIDs: has("pids"), CPUs: has("cpu")}
	case !f.Rootless:
		f.Enforces = runtime.Enforced{Memory: true, PIDs: true, CPUs: true}
	}
	f.Seccomp, f.LSM = "", nil
	if h.Security.SeccompEnabled {
		f.Seccomp = "engine"
	}
	if h.Security.AppArmorEnabled {
		f.LSM = append(f.LSM, "apparmor")
	}
	if h.Security.SELinuxEnabled {
		f.LSM = append(f.LSM, "selinux")
	}
	const imitation = "podman's imitation of docker's API "
	f.Lacks = []string{imitation + "has no clock that ends a container which is too old, as podman's own has",
		imitation + "sets no limit of descriptors and core files, as podman's own does: the guest sets them",
		imitation + "can't take an image's variables away: they are set to nothing"}
	if f.CgroupVersion == 1 {
		f.Lacks = append(f.Lacks, imitation+"gives no control group namespace on cgroup v1, as podman's own does")
	}
	return f
}
