// Package faults breaks deliveries on purpose and asserts what txidem promises about them: a message whose delivery was
// broken anywhere is redelivered until it is acked, and then has one effect and one record.
//
//	cd integration/faults && go test -race -timeout 30m
//
// runs it and prints one table at its end (report_test.go): how often each fault was injected at which point of a delivery,
// and how many effects were doubled, messages lost and connections leaked. With a package argument (./faults) go test
// shows the table when -v is given, or when the run fails.
//
// A server that takes 100 connections is enough for the crash matrix. Parts of it are chosen by name, from mode,
// connection, handler, fault and message, as in
//
//	go test -run 'TestMatrix/^Process$/^warm$/^one_statement$/^drop'
//
// -short leaves out the mutants of the library, each of which is a build of the suite. TXIDEM_MATRIX=full adds the cells
// of every mode on a new connection; without it Process alone has them. The variables that choose the server are those of
// package pgserver.
package faults
