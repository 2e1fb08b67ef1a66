package pgserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// embeddedLimit bounds a start: the first one downloads some tens of megabytes.
const embeddedLimit = 4 * time.Minute

// openEmbedded starts a server from binaries that are downloaded once, into a cache in the user's home folder.
func openEmbedded(ctx context.Context, settings map[string]string) (*Server, error) {
	if os.Geteuid() == 0 {
		return nil, errors.New("PostgreSQL refuses to run as root: run as an ordinary user, or install a PostgreSQL server, " +
			"which is then started as user postgres or nobody")
	}
	folder, err := makeFolder(nil)
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	return startEmbedded(ctx, embeddedConfig(folder, port, settings), folder)
}

// embeddedConfig describes a server that listens on 127.0.0.1 only. The password is no secret there.
func embeddedConfig(folder string, port int, settings map[string]string) embeddedpostgres.Config {
	parameters := map[string]string{"listen_addresses": "127.0.0.1", "unix_socket_directories": ""}
	for name, value := range settings {
		parameters[name] = value
	}
	return embeddedpostgres.DefaultConfig().
		Port(uint32(port)).
		RuntimePath(filepath.Join(folder, "run")).
		DataPath(filepath.Join(folder, "data")).
		Locale("C").
		Encoding("UTF8").
		StartTimeout(readyLimit).
		StartParameters(parameters)
}

// startEmbedded starts the server that config describes. The library takes no context: a start that is given up goes on
// behind our back, and is undone when it comes to its end.
func startEmbedded(ctx context.Context, config embeddedpostgres.Config, folder string) (*Server, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, embeddedLimit, fmt.Errorf("not ready within %v", embeddedLimit))
	defer cancel()
	output := &lineLog{}
	db := embeddedpostgres.NewDatabase(config.Logger(output))
	started := make(chan error, 1)
	go func() {
		started <- db.Start()
		http.DefaultClient.CloseIdleConnections() // those of the download
	}()
	undo := func() error { return errors.Join(stopStarted(db), os.RemoveAll(folder)) }
	select {
	case err := <-started:
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%w\n%s", err, lastLines(output.String())), os.RemoveAll(folder))
		}
	case <-ctx.Done():
		go func() { <-started; _ = undo() }()
		return nil, context.Cause(ctx)
	}
	end := func(ctx context.Context) error { return within(ctx, undo) }
	dsn := config.GetConnectionURL() + "?sslmode=disable"
	return &Server{source: FromEmbedded, dsn: dsn, origin: "from embedded-postgres", end: end}, nil
}

// stopStarted stops a server unless it never started.
func stopStarted(db *embeddedpostgres.EmbeddedPostgres) error {
	if err := db.Stop(); !errors.Is(err, embeddedpostgres.ErrServerNotStarted) {
		return err
	}
	return nil
}

// within returns what f returns, or gives up waiting for it when ctx ends.
func within(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("pgserver: the server does not stop: %w", context.Cause(ctx))
	}
}
