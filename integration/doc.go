// Package integration is the test suite of txidem against a real PostgreSQL. It has no code of its own for users; the
// packages below it find or start the server (pgserver) and give each test a database (testdb).
package integration
