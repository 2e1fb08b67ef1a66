package testdb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/txidem/txidem-go/integration/pgserver"
)

const (
	startLimit = 5 * time.Minute // a first pull or download of a server takes its time
	adminLimit = 60 * time.Second
)

// cluster is the package's server and its template database.
type cluster struct {
	config      Config
	interrupted chan struct{} // closed when the process is told to end: a start under way is given up

	start     sync.Once
	startErr  error
	server    *pgserver.Server
	template  string
	inventory inventory // of the template

	mu   sync.Mutex
	free []string // databases for later tests

	// clone serialises CREATE DATABASE: the template must have no connection meanwhile, and two clones at the same time
	// count as one for each other.
	clone sync.Mutex
}

// ready starts the server and makes the template, at the first call.
func (c *cluster) ready() error {
	c.start.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), startLimit)
		defer cancel()
		go func() {
			select {
			case <-c.interrupted:
				cancel()
			case <-ctx.Done():
			}
		}()
		c.startErr = c.begin(ctx)
	})
	return c.startErr
}

func (c *cluster) begin(ctx context.Context) error {
	server, err := pgserver.Start(ctx, pgserver.Options{
		Order:    c.config.Order,
		Settings: c.config.Settings,
		Log:      func(line string) { fmt.Fprintln(os.Stderr, "testdb:", line) },
	})
	if err != nil {
		return err
	}
	c.server = server
	c.template = randomName("template")
	if err := c.admin(ctx, "CREATE DATABASE "+quote(c.template)); err != nil {
		return fmt.Errorf("make the template database: %w", err)
	}
	return c.fill(ctx)
}

// fill runs the caller's set-up in the template, on a connection that is closed again.
func (c *cluster) fill(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, c.dsn(c.template))
	if err != nil {
		return fmt.Errorf("connect to the template database: %w", err)
	}
	if c.config.Setup != nil {
		err = c.config.Setup(ctx, conn)
	}
	if err == nil {
		c.inventory, err = takeInventory(ctx, conn)
	}
	closeErr := conn.Close(ctx)
	if err := errors.Join(err, closeErr); err != nil {
		return fmt.Errorf("set up the template database: %w", err)
	}
	return nil
}

// stop ends the server. Where it goes on without us, the template and the recycled databases are dropped.
func (c *cluster) stop() error {
	c.start.Do(func() { c.startErr = errors.New("the tests are over") })
	if c.server == nil {
		return nil
	}
	var err error
	if c.external() {
		ctx, cancel := context.WithTimeout(context.Background(), adminLimit)
		defer cancel()
		for _, name := range append(c.free, c.template) {
			err = errors.Join(err, c.admin(ctx, dropStatement(name)))
		}
	}
	return errors.Join(err, c.server.Stop())
}

// external reports whether the server outlives the tests.
func (c *cluster) external() bool { return c.server.Source() == pgserver.FromDSN }

// dsn returns the server's connection string for another database.
func (c *cluster) dsn(database string) string { return withDatabase(c.server.DSN(), database) }

// admin runs one statement in the server's own database, on a connection of its own: a test may have ended the server,
// and with it every older connection.
func (c *cluster) admin(ctx context.Context, sql string) error {
	conn, err := pgx.Connect(ctx, c.server.DSN())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, sql)
	return err
}

// create clones the template.
func (c *cluster) create(ctx context.Context, name string) error {
	c.clone.Lock()
	defer c.clone.Unlock()
	return c.admin(ctx, "CREATE DATABASE "+quote(name)+" TEMPLATE "+quote(c.template))
}
