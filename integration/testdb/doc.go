// Package testdb gives each test a PostgreSQL database of its own.
//
// A test package hands its TestMain to Main:
//
//	func TestMain(m *testing.M) {
//		testdb.Main(m, testdb.Config{Setup: func(ctx context.Context, conn *pgx.Conn) error {
//			return migrations.Apply(ctx, conn)
//		}})
//	}
//
// and each test that needs a database asks for one:
//
//	func TestClaim(t *testing.T) {
//		t.Parallel()
//		db := testdb.New(t)
//		pool := db.Pool(t)
//		…
//		db.Invariant(t)
//	}
//
// The first New starts the package's one server, through pgserver, and makes one template database with Config.Setup. Every
// New gives a clone of that template, a new one or one that an earlier test left and that was emptied. The databases have
// names with a random part, so that several test runs can share a server.
package testdb
