package main

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// podmanRun is `podman run --rm` of python with print(1), in the same image and with the flags that say the same as the bridge's own
// request.
func (s *suite) podmanRun(ctx context.Context) (time.Duration, error) {
	argv := append([]string{"run", "--rm", "-i", "--pull=never"}, flags(s.container)...)
	argv = append(argv, fmt.Sprint(s.container["image"]), "python3", "-I", "-B", "-c", "print(1)")
	said := &tail{limit: 2 << 10}
	cmd := exec.CommandContext(ctx, "podman", argv...) //nolint:gosec // a baseline
	cmd.Stderr = said
	cmd.Dir = s.dir
	begin := time.Now()
	out, err := cmd.Output()
	took := time.Since(begin)
	if err == nil && string(out) != "1\n" {
		err = fmt.Errorf("it printed %q", out)
	}
	if err != nil {
		return 0, fmt.Errorf("podman run: %w; %s", err, said)
	}
	return took, nil
}

// flags are what a container of podman's API is on the command line. What is left out changes nothing of what is measured: what the
// command line does by itself or for --rm and -i, fields that the bindings send empty, and who looks after the container. The OCI
// runtime is that of podman's settings for both.
func flags(c container) []string {
	var all []string
	add := func(format string, a ...any) { all = append(all, fmt.Sprintf(format, a...)) }
	truth := func(field string) bool { b, _ := c[field].(bool); return b }
	text := func(field string) string { s, _ := c[field].(string); return s }

	env, _ := c["env"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		add("--env=%s=%s", name, env[name])
	}
	for _, x := range []struct{ field, flag string }{{"unsetenvall", "--unsetenv-all"}, {"read_only_filesystem", "--read-only"}, {"use_image_hosts", "--no-hosts"}} {
		if truth(x.field) {
			add("%s", x.flag)
		}
	}
	add("--read-only-tmpfs=%t", truth("read_write_tmpfs"))
	if _, ok := c["manage_password"]; ok {
		add("--passwd=%t", truth("manage_password"))
	}
	add("--http-proxy=%t", truth("httpproxy"))
	for _, x := range []struct{ field, flag string }{
		{"user", "--user"}, {"hostname", "--hostname"}, {"systemd", "--systemd"}, {"image_volume_mode", "--image-volume"}, {"sdnotifyMode", "--sdnotify"},
	} {
		if v := text(x.field); v != "" {
			add("%s=%s", x.flag, v)
		}
	}
	if log, ok := c["log_configuration"].(map[string]any); ok {
		add("--log-driver=%v", log["driver"])
	}
	if _, ok := c["healthconfig"]; ok {
		add("--no-healthcheck")
	}
	if seconds, ok := c["timeout"].(float64); ok {
		add("--timeout=%.0f", seconds)
	}
	return slices.Concat(all, wall(c), rooms(c), limits(c))
}

// wall are the flags of namespaces and privileges.
func wall(c container) []string {
	var all []string
	add := func(format string, a ...any) { all = append(all, fmt.Sprintf(format, a...)) }
	for _, x := range []struct{ field, flag string }{
		{"netns", "--network"}, {"pidns", "--pid"}, {"utsns", "--uts"}, {"cgroupns", "--cgroupns"}, {"ipcns", "--ipc"},
	} {
		if ns, ok := c[x.field].(map[string]any); ok {
			add("%s=%v", x.flag, ns["nsmode"])
		}
	}
	if maps, ok := c["idmappings"].(map[string]any); ok {
		for _, x := range []struct{ field, flag string }{{"UIDMap", "--uidmap"}, {"GIDMap", "--gidmap"}} {
			for _, m := range objects(maps[x.field]) {
				add("%s=%.0f:%.0f:%.0f", x.flag, m["container_id"], m["host_id"], m["size"])
			}
		}
	}
	for _, capability := range texts(c["cap_drop"]) {
		add("--cap-drop=%s", capability)
	}
	if b, _ := c["no_new_privileges"].(bool); b {
		add("--security-opt=no-new-privileges")
	}
	if path, _ := c["seccomp_profile_path"].(string); path != "" {
		add("--security-opt=seccomp=%s", path)
	}
	if masked := texts(c["mask"]); len(masked) > 0 {
		add("--security-opt=mask=%s", strings.Join(masked, ":"))
	}
	for _, l := range objects(c["r_limits"]) {
		add("--ulimit=%s=%.0f:%.0f", l["type"], l["soft"], l["hard"])
	}
	return all
}

// rooms are the flags of the writable directories.
func rooms(c container) []string {
	var all []string
	for _, m := range objects(c["mounts"]) {
		all = append(all, fmt.Sprintf("--tmpfs=%v:%s", m["destination"], strings.Join(texts(m["options"]), ",")))
	}
	return all
}

// limits are the flags of what the control groups are to enforce, where the engine can have them do so.
func limits(c container) []string {
	resources, _ := c["resource_limits"].(map[string]any)
	var all []string
	for _, x := range []struct{ of, field, flag string }{
		{"memory", "limit", "--memory"}, {"memory", "swap", "--memory-swap"}, {"pids", "limit", "--pids-limit"},
		{"cpu", "period", "--cpu-period"}, {"cpu", "quota", "--cpu-quota"},
	} {
		of, _ := resources[x.of].(map[string]any)
		if n, ok := of[x.field].(float64); ok {
			all = append(all, fmt.Sprintf("%s=%.0f", x.flag, n))
		}
	}
	return all
}

// objects is a JSON array of objects.
func objects(v any) []map[string]any {
	list, _ := v.([]any)
	var all []map[string]any
	for _, x := range list {
		if m, ok := x.(map[string]any); ok {
			all = append(all, m)
		}
	}
	return all
}
