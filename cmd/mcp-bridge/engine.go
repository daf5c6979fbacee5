package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/settings"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/terminal"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/detect"
	"github.com/mcp-bridge/mcp-bridge/runtime/docker"
	"github.com/mcp-bridge/mcp-bridge/runtime/guard"
	"github.com/mcp-bridge/mcp-bridge/runtime/image"
	"github.com/mcp-bridge/mcp-bridge/runtime/podman"
)

// engines makes the drivers of the engines that the environment leaves to choose from.
type engines struct {
	cfg       settings.Settings
	hardening runtime.Hardening
	guard     *guard.Guard // may be nil
	log       *slog.Logger // may be nil
}

// newCluster returns the cluster that the environment names; nil where this program has no client
// for Kubernetes, nor what that brings along.
var newCluster func(engines) detect.Candidate

// newDriver chooses among the engines that the environment names: one, the one that answers at a
// URL, or any.
func newDriver(cfg settings.Settings, g *guard.Guard, log *slog.Logger) (*detect.Driver, error) {
	profile, err := cfg.Filter()
	if err != nil {
		return nil, exit.Usage(err)
	}
	e := engines{cfg: cfg, hardening: runtime.Hardening{Seccomp: profile, OCIRuntime: cfg.OCIRuntime}, guard: g,
		log: log}
	return detect.New(detect.Config{Candidates: e.candidates(), Log: log}), nil
}

// candidates returns them in order of preference.
func (e engines) candidates() []detect.Candidate {
	switch endpoint := e.cfg.Runtime; {
	case endpoint == "podman":
		return []detect.Candidate{e.podman(os.Getenv("CONTAINER_HOST"))}
	case endpoint == "docker":
		return []detect.Candidate{e.docker("")}
	case settings.IsCluster(endpoint):
		return []detect.Candidate{newCluster(e)}
	case strings.HasPrefix(endpoint, "npipe:"): // which podman's bindings don't speak
		return []detect.Candidate{e.docker(endpoint)}
	case endpoint != "":
		return []detect.Candidate{e.podman(endpoint), e.docker(endpoint)}
	}
	return []detect.Candidate{e.podman(os.Getenv("CONTAINER_HOST")), e.docker("")}
}

func (e engines) podman(endpoint string) detect.Candidate {
	cfg := podman.Config{
		Endpoint:     endpoint,
		Setting:      e.setting(),
		SSHKey:       os.Getenv("CONTAINER_SSHKEY"),
		AllowRootful: e.cfg.AllowRootful,
		Hardening:    e.hardening,
		IdleTimeout:  time.Duration(e.cfg.RuntimeIdleTimeout),
		RuntimeDir:   os.Getenv("XDG_RUNTIME_DIR"),
		Log:          e.log,
	}
	// podman has no such variable of its own
	if certs := os.Getenv("DOCKER_CERT_PATH"); certs != "" && strings.HasPrefix(endpoint, "tcp:") {
		cfg.TLS = podman.TLS{CA: filepath.Join(certs, "ca.pem"), Cert: filepath.Join(certs, "cert.pem"),
			Key: filepath.Join(certs, "key.pem")}
	}
	if e.guard != nil {
		cfg.Guard = e.guard
	}
	return detect.Candidate{Name: "podman", Endpoint: runtime.Redacted(endpoint),
		Open: func() runtime.Driver { return podman.New(cfg) }}
}

func (e engines) docker(endpoint string) detect.Candidate {
	cfg := docker.Config{
		Endpoint:     endpoint,
		Setting:      e.setting(),
		AllowRootful: e.cfg.AllowRootful,
		RuntimeDir:   os.Getenv("XDG_RUNTIME_DIR"),
		Hardening:    e.hardening,
		Log:          e.log,
	}
	if e.guard != nil {
		cfg.Guard = e.guard
	}
	return detect.Candidate{Name: "docker", Endpoint: runtime.Redacted(endpoint),
		Open: func() runtime.Driver { return docker.New(cfg) }}
}

// setting returns the variable that names an endpoint; empty for the engines' own.
func (e engines) setting() string {
	if settings.IsURL(e.cfg.Runtime) {
		return settings.Prefix + "_RUNTIME"
	}
	return ""
}

func imageCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "image",
		Short: "Show, get or make the container image that code runs in",
		Args:  cobra.NoArgs,
		RunE:  imageAction(a, showImages),
	}
	cmd.AddCommand(
		&cobra.Command{Use: "pull", Short: "Pull the configured image", Args: cobra.NoArgs,
			RunE: imageAction(a, pullImage)},
		&cobra.Command{Use: "build",
			Short: "Make an image from packages of Debian or Ubuntu, for where no registry is reached",
			Args:  cobra.NoArgs, RunE: imageAction(a, newImage)},
		&cobra.Command{Use: "ensure", Short: "Have an image: the one that is there, else pull it, else build one",
			Args: cobra.NoArgs, RunE: imageAction(a, ensureImage)},
	)
	return cmd
}

func imageAction(a *app,
	f func(context.Context, *terminal.Streams, *parts) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		return withParts(cmd.Context(), a.io.Err, once,
			func(ctx context.Context, p *parts) error { return f(ctx, a.io, p) })
	}
}

func showImages(ctx context.Context, io *terminal.Streams, p *parts) error {
	used := false
	for _, ref := range p.cfg.Images() {
		i, has, err := p.driver.FindImage(ctx, ref)
		if err != nil {
			return err
		}
		switch {
		case has && !used:
			used = true
			fmt.Fprintln(io.Out, imageLine(i)+"  in use")
		case has:
			fmt.Fprintln(io.Out, imageLine(i)+"  present")
		default:
			fmt.Fprintln(io.Out, ref+"  missing")
		}
	}
	built, err := p.environments().List(ctx)
	for _, env := range built {
		fmt.Fprintln(io.Out, environmentLine(env, time.Now())+"  environment")
	}
	return err
}

func pullImage(ctx context.Context, io *terminal.Streams, p *parts) error {
	ref := p.cfg.Images()[0]
	i, err := p.driver.PullImage(ctx, ref, io.Say)
	if err != nil {
		return err
	}
	fmt.Fprintln(io.Out, imageLine(i))
	return nil
}

func ensureImage(ctx context.Context, io *terminal.Streams, p *parts) error {
	i, err := runtime.FirstImage(ctx, p.driver, p.cfg.Images())
	if err != nil {
		return err
	}
	if i.ID != "" {
		fmt.Fprintln(io.Out, i.Ref)
		return nil
	}
	err = pullImage(ctx, io, p)
	if err == nil || !errors.As(err, new(*runtime.ImageError)) || p.cfg.Image != "" {
		return err
	}
	io.Say(err.Error())
	io.Say("making one from packages of Debian or Ubuntu instead")
	return newImage(ctx, io, p)
}

// newImage makes an image and prints its name.
func newImage(ctx context.Context, io *terminal.Streams, p *parts) error {
	if err := p.buildImage(ctx, io.Say); err != nil {
		return err
	}
	fmt.Fprintln(io.Out, image.LocalRef)
	return nil
}

// buildImage makes the root file system in a temporary file: the engine wants to know that it is
// whole before it imports it.
func (p *parts) buildImage(ctx context.Context, progress runtime.Progress) (err error) {
	if _, err := p.driver.Facts(ctx); err != nil {
		return err // before half a minute of work
	}
	f, err := os.CreateTemp("", "mcp-bridge-image-*.tar")
	if err != nil {
		return fmt.Errorf("making a temporary file for the image: %w", err)
	}
	defer p.guard.File(f.Name())()
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	if err := image.Build(ctx, f, image.Options{Progress: progress}); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return p.driver.ImportImage(ctx, image.LocalRef, f)
}
