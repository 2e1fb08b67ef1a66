package pgserver

import (
	"context"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/authconfig"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

const (
	pullStartLimit = 20 * time.Second // until the engine says that there is something to pull
	pullLimit      = 4 * time.Minute
)

// ensureImages makes sure that the engine has what the container needs. testcontainers would pull too, but retries for a
// quarter of an hour what cannot be pulled.
func ensureImages(ctx context.Context, p *testcontainers.DockerProvider, image string) error {
	config := p.Config().Config
	if config.HubImageNamePrefix != "" {
		return nil // the images have other names then, which testcontainers finds and pulls itself
	}
	if err := ensureImage(ctx, p.Client(), image); err != nil {
		return fmt.Errorf("%w (%s names another image)", err, envImage)
	}
	if config.RyukDisabled {
		return nil
	}
	reaper := testcontainers.ReaperDefaultImage //nolint:staticcheck // deprecated without a public replacement
	if err := ensureImage(ctx, p.Client(), reaper); err != nil {
		return fmt.Errorf("%w (with TESTCONTAINERS_RYUK_DISABLED=true this image, which removes the containers of a killed "+
			"process, is not needed)", err)
	}
	return nil
}

// ensureImage pulls an image that the engine does not have, and asks no registry for one that it has.
func ensureImage(ctx context.Context, engine client.APIClient, image string) error {
	_, err := engine.ImageInspect(ctx, image)
	if errdefs.IsNotFound(err) {
		err = pullImage(ctx, engine, image)
	}
	if err != nil {
		return fmt.Errorf("image %s is not there and cannot be pulled: %w", image, err)
	}
	return nil
}

// pullImage tries once. A registry that cannot be reached shows before the first word of progress, which has its own,
// shorter limit.
func pullImage(ctx context.Context, engine client.APIClient, image string) error {
	ctx, cancelAll := context.WithTimeoutCause(ctx, pullLimit, fmt.Errorf("not done within %v", pullLimit))
	defer cancelAll()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stall := time.AfterFunc(pullStartLimit, func() { cancel(fmt.Errorf("not begun within %v", pullStartLimit)) })
	progress, err := engine.ImagePull(ctx, image, client.ImagePullOptions{RegistryAuth: registryAuth(ctx, image)})
	stall.Stop()
	if err == nil {
		err = progress.Wait(ctx)
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// registryAuth returns the user's credentials for the image's registry, and nothing when there are none, as for public
// images.
func registryAuth(ctx context.Context, image string) string {
	_, config, err := testcontainers.DockerImageAuth(ctx, image)
	if err != nil {
		return ""
	}
	encoded, err := authconfig.Encode(config)
	if err != nil {
		return ""
	}
	return encoded
}
