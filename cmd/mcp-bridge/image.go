package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/image"
)

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
			Args:  cobra.NoArgs, RunE: imageAction(a, buildImage)},
		&cobra.Command{Use: "ensure", Short: "Have an image: the one that is there, else pull it, else build one",
			Args: cobra.NoArgs, RunE: imageAction(a, ensureImage)},
	)
	return cmd
}

func imageAction(a *app, f func(context.Context, *app, *parts) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		return a.withParts(cmd.Context(), once, func(ctx context.Context, p *parts) error { return f(ctx, a, p) })
	}
}

// present returns the first of the configured images that the engine has, or "".
func (p *parts) present(ctx context.Context) (string, error) {
	for _, ref := range p.cfg.images() {
		_, has, err := p.driver.FindImage(ctx, ref)
		if err != nil {
			return "", err
		}
		if has {
			return ref, nil
		}
	}
	return "", nil
}

func showImages(ctx context.Context, a *app, p *parts) error {
	used := false
	for _, ref := range p.cfg.images() {
		i, has, err := p.driver.FindImage(ctx, ref)
		if err != nil {
			return err
		}
		switch {
		case has && !used:
			used = true
			fmt.Fprintln(a.stdout, imageLine(i)+"  in use")
		case has:
			fmt.Fprintln(a.stdout, imageLine(i)+"  present")
		default:
			fmt.Fprintln(a.stdout, ref+"  missing")
		}
	}
	built, err := p.environments().List(ctx)
	for _, env := range built {
		fmt.Fprintln(a.stdout, environmentLine(env, time.Now())+"  environment")
	}
	return err
}

func pullImage(ctx context.Context, a *app, p *parts) error {
	ref := p.cfg.images()[0]
	i, err := p.driver.PullImage(ctx, ref, a.say)
	if err != nil {
		return err
	}
	fmt.Fprintln(a.stdout, imageLine(i))
	return nil
}

func ensureImage(ctx context.Context, a *app, p *parts) error {
	ref, err := p.present(ctx)
	if err != nil {
		return err
	}
	if ref != "" {
		fmt.Fprintln(a.stdout, ref)
		return nil
	}
	err = pullImage(ctx, a, p)
	var missing *runtime.ImageError
	if err == nil || !errors.As(err, &missing) || p.cfg.Image != "" {
		return err
	}
	a.say(err.Error())
	a.say("making one from packages of Debian or Ubuntu instead")
	return buildImage(ctx, a, p)
}

// buildImage makes the root file system in a temporary file: the engine wants to know that it is
// whole before it imports it.
func buildImage(ctx context.Context, a *app, p *parts) (err error) {
	if _, err := p.driver.Facts(ctx); err != nil {
		return err // before half a minute of work
	}
	f, err := os.CreateTemp("", "mcp-bridge-image-*.tar")
	if err != nil {
		return fmt.Errorf("making a temporary file for the image: %w", err)
	}
	defer p.guard.File(f.Name())()
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	if err := image.Build(ctx, f, image.Options{Progress: a.say}); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := p.driver.ImportImage(ctx, image.LocalRef, f); err != nil {
		return err
	}
	fmt.Fprintln(a.stdout, image.LocalRef)
	return nil
}
