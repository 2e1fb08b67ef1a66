package migrations_test

import (
	"fmt"
	"strings"

	"github.com/txidem/txidem-go/migrations"
)

// The steps as files for goose.
func ExampleSQL() {
	steps, err := migrations.SQL(&migrations.Config{Schema: "shop", Table: "processed"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range steps {
		file := fmt.Sprintf("%05d_%s.sql", m.Version, m.Name)
		content := "-- +goose Up\n" + m.Up + "\n-- +goose Down\n" + m.Down
		fmt.Println(file, strings.Contains(content, `"shop"."processed"`))
	}
	// Output:
	// 00001_messages.sql true
	// 00002_no_length_checks.sql true
}

// A name that PostgreSQL would not store verbatim is refused before anything is sent.
func ExampleConfigError() {
	_, err := migrations.SQL(&migrations.Config{Table: "two\nlines"})
	fmt.Println(err)
	// Output: migrations: Table "two\nlines" has a control character: correct the Config given to migrations
}
