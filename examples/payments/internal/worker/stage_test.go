package worker

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
)

func TestReportIsOneLine(t *testing.T) {
	t.Parallel()
	tests := map[string]Report{
		"received\n":           {Stage: Received},
		"failed no such row\n": {Stage: Failed, Text: "no such row"},
	}
	for line, report := range tests {
		var b strings.Builder
		report.write(&b)
		assert.Equal(t, line, b.String())
		assert.Equal(t, report, ParseReport(strings.TrimSuffix(line, "\n")))
	}
	var b strings.Builder
	Report{Stage: Failed, Text: "two\nlines"}.write(&b)
	assert.Equal(t, "failed two lines\n", b.String())
}

func TestCommitTracerReportsNothingButCommits(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		tag  string
		err  error
		said string
	}{
		"commit":                {tag: "COMMIT", said: "committed\n"},
		"commit of an aborted":  {tag: "ROLLBACK"},
		"failed commit":         {tag: "COMMIT", err: errors.New("broken")},
		"statement of handlers": {tag: "INSERT 0 2"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			commitTracer{&b}.TraceQueryEnd(context.Background(), nil,
				pgx.TraceQueryEndData{CommandTag: pgconn.NewCommandTag(tt.tag), Err: tt.err})
			assert.Equal(t, tt.said, b.String())
		})
	}
}
