package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"

	"github.com/txidem/txidem-go/integration/pgserver"
)

// options are the command's flags.
type options struct {
	quick, size, processor, markdown bool
	json, chart                      string
}

func main() {
	var o options
	flag.BoolVar(&o.quick, "quick", false, "the whole matrix in a minute")
	flag.BoolVar(&o.size, "size", false, "only claims, in tables of 0, 1 M and 10 M records")
	flag.BoolVar(&o.processor, "processor", false, "only processor time")
	flag.BoolVar(&o.markdown, "markdown", false, "print Markdown")
	flag.StringVar(&o.json, "json", "", "write the figures to this `file`")
	flag.StringVar(&o.chart, "chart", "", "draw the chart as SVG into this `file`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := o.run(ctx); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (o options) plan() plan {
	switch {
	case o.size:
		return sizePlan()
	case o.processor:
		return processorPlan()
	case o.quick:
		return quickPlan()
	default:
		return fullPlan()
	}
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...) }

// run gets a server and ends it.
func (o options) run(ctx context.Context) (err error) {
	server, err := pgserver.Start(ctx, pgserver.Options{Log: func(line string) { say("%s", line) }})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	name := "txidem_bench_" + strings.ToLower(rand.Text()[:16])
	if err := admin(ctx, server, "CREATE DATABASE "+name); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, admin(context.WithoutCancel(ctx), server, "DROP DATABASE "+name+" WITH (FORCE)"))
	}()
	r, err := bench(ctx, withDatabase(server.DSN(), name), o.plan())
	if err != nil {
		return err
	}
	return o.publish(r)
}

// bench measures in an empty database. It refuses a server that does not wait for its disk.
func bench(ctx context.Context, dsn string, p plan) (*Report, error) {
	l, err := newLab(ctx, dsn, say)
	if err != nil {
		return nil, err
	}
	defer l.close()
	fsync, err := l.setting(ctx, "fsync")
	if err == nil && fsync != "on" {
		err = errors.New("the server runs with fsync=" + fsync + ": its times say nothing about one that keeps what it acknowledges")
	}
	if err != nil {
		return nil, err
	}
	return l.measure(ctx, p)
}

// publish prints and writes what was asked for.
func (o options) publish(r *Report) error {
	err := r.write(os.Stdout, o.markdown)
	if o.json != "" {
		err = errors.Join(err, r.writeJSON(o.json))
	}
	if o.chart != "" {
		err = errors.Join(err, r.writeChart(o.chart))
	}
	return err
}

// admin runs one statement in the server's own database.
func admin(ctx context.Context, server *pgserver.Server, sql string) error {
	conn, err := pgx.Connect(ctx, server.DSN())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, sql)
	return err
}

// withDatabase changes the database of a connection string, in either of its two forms.
func withDatabase(dsn, database string) string {
	if u, err := url.Parse(dsn); err == nil && (u.Scheme == "postgres" || u.Scheme == "postgresql") {
		u.Path = "/" + database
		return u.String()
	}
	return dsn + " dbname=" + database
}
