package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/modules/postgres"
)

// DefaultImage is the image that FromDocker takes when TXIDEM_IMAGE does not name one.
const DefaultImage = "postgres:18-alpine"

const (
	engineLimit    = 5 * time.Second
	containerLimit = 90 * time.Second
)

// openDocker starts a container. testcontainers reports progress to a logger of the whole process; as this package says
// one line and no more, that logger is replaced by a silent one. What it would have said is part of an error.
func openDocker(ctx context.Context, settings map[string]string) (*Server, error) {
	log.SetDefault(log.NewNoopLogger())
	provider, err := dockerProvider(ctx)
	if err != nil {
		return nil, fmt.Errorf("no engine answers: %w", err)
	}
	defer provider.Close()
	image := dockerImage()
	if err := ensureImages(ctx, provider, image); err != nil {
		return nil, err
	}
	container, err := runContainer(ctx, image, settings)
	if err != nil {
		return nil, fmt.Errorf("run a container of image %s: %w", image, err)
	}
	dsn, err := container.ConnectionString(ctx, "sslmode=disable")
	if err != nil {
		err = fmt.Errorf("ask for the container's port: %w", err)
		return nil, errors.Join(err, removeContainer(context.WithoutCancel(ctx), container))
	}
	end := func(ctx context.Context) error { return removeContainer(ctx, container) }
	return &Server{source: FromDocker, dsn: dsn, origin: "from Docker image " + image, end: end}, nil
}

func dockerImage() string {
	if image := os.Getenv(envImage); image != "" {
		return image
	}
	return DefaultImage
}

// dockerProvider finds the engine the way testcontainers does. That asks the engine without a time limit, so it is left
// behind when the engine takes the connection and then says nothing.
func dockerProvider(ctx context.Context) (*testcontainers.DockerProvider, error) {
	type result struct {
		provider *testcontainers.DockerProvider
		err      error
	}
	found := make(chan result, 1)
	go func() {
		p, err := testcontainers.NewDockerProvider()
		found <- result{p, err}
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, engineLimit, fmt.Errorf("no reply within %v", engineLimit))
	defer cancel()
	select {
	case r := <-found:
		if r.err != nil {
			return nil, r.err
		}
		return r.provider, r.provider.Health(ctx)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// runContainer returns once the server in the container takes connections. A container that does not come so far is
// removed.
func runContainer(ctx context.Context, image string, settings map[string]string) (*postgres.PostgresContainer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, containerLimit, fmt.Errorf("not ready within %v", containerLimit))
	defer cancel()
	lines := &lineLog{}
	container, err := postgres.Run(ctx, image,
		testcontainers.WithCmd(append([]string{"postgres"}, settingArgs(settings)...)...),
		testcontainers.WithLogger(lines),
		postgres.BasicWaitStrategies(),
	)
	if err == nil {
		return container, nil
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("%w (%w)", err, context.Cause(ctx))
	}
	err = fmt.Errorf("%w\n%s", err, lastLines(lines.String()))
	return nil, errors.Join(err, removeContainer(context.WithoutCancel(ctx), container))
}

// removeContainer kills the server and removes the container with its volume, since nothing is kept.
func removeContainer(ctx context.Context, container *postgres.PostgresContainer) error {
	if container == nil || container.Container == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, stopLimit)
	defer cancel()
	err := testcontainers.TerminateContainer(container, testcontainers.StopContext(ctx), testcontainers.StopTimeout(0))
	if err != nil {
		return fmt.Errorf("pgserver: remove container %s: %w", container.GetContainerID(), err)
	}
	return nil
}
