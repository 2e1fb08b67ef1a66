// Package broker runs a NATS JetStream server inside this process and speaks to it.
package broker

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// readyLimit bounds the start of the server.
const readyLimit = 15 * time.Second

// Server is an embedded NATS server with JetStream on, on a free port of 127.0.0.1.
type Server struct {
	nats   *server.Server
	folder string
	conn   *nats.Conn
	js     jetstream.JetStream
}

// Start starts a server whose streams live in a new temporary folder. End it with Stop.
func Start() (*Server, error) {
	folder, err := os.MkdirTemp("", "txidem-nats-")
	if err != nil {
		return nil, fmt.Errorf("broker: make a folder: %w", err)
	}
	s := &Server{folder: folder}
	if err := s.start(); err != nil {
		return nil, errors.Join(fmt.Errorf("broker: %w", err), s.Stop())
	}
	return s, nil
}

func (s *Server) start() error {
	var err error
	s.nats, err = server.NewServer(&server.Options{
		Host:      "127.0.0.1",
		Port:      server.RANDOM_PORT,
		JetStream: true,
		StoreDir:  s.folder,
		NoLog:     true,
		NoSigs:    true, // signals are the demo's
	})
	if err != nil {
		return err
	}
	s.nats.Start()
	if !s.nats.ReadyForConnections(readyLimit) {
		return fmt.Errorf("not ready within %v", readyLimit)
	}
	if s.conn, err = nats.Connect("", nats.InProcessServer(s.nats)); err != nil {
		return err
	}
	s.js, err = jetstream.New(s.conn)
	return err
}

// URL is where workers connect.
func (s *Server) URL() string { return s.nats.ClientURL() }

// Stop ends the server and removes its folder.
func (s *Server) Stop() error {
	if s.conn != nil {
		s.conn.Close()
	}
	if s.nats != nil {
		s.nats.Shutdown()
		s.nats.WaitForShutdown()
	}
	return os.RemoveAll(s.folder)
}
