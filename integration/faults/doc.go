// Package faults breaks deliveries on purpose and asserts what txidem promises about them: a message whose delivery was
// broken anywhere is redelivered until it is acked, and then has one effect and one record.
//
//	cd integration/faults && go test -race -timeout 20m
//
// runs it and prints one table at its end (report.go): how often each fault was injected at which point of a delivery, and
// how many effects were doubled, messages lost and connections leaked. With a package argument (./faults) go test shows
// the table when -v is given, or when the run fails.
package faults
