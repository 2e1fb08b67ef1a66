package demo

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/txidem/txidem-go/examples/payments/internal/worker"
	"github.com/txidem/txidem-go/examples/payments/payment"
)

func good() Result {
	return Result{Mode: worker.Transactional, Messages: 10, Deliveries: 14, Kills: 3, AfterCommit: 2, Charges: 10}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	assert.NoError(t, Verdict([]Result{good()}))
	tests := map[string]struct {
		change func(*Result)
		says   string
	}{
		"charged twice":   {func(r *Result) { r.Twice, r.Charges = 1, 11 }, "charged 1 messages more than once"},
		"lost":            {func(r *Result) { r.Lost, r.Charges = 1, 9 }, "lost 1"},
		"twice and lost":  {func(r *Result) { r.Twice, r.Lost = 1, 1 }, "more than once"},
		"charges made up": {func(r *Result) { r.Charges = 11 }, "11 charges for 10"},
		"unbalanced":      {func(r *Result) { r.Unbalanced = 1 }, "does not balance"},
		"wrong amount":    {func(r *Result) { r.Overcharged = -5 }, "-0.05"},
		"did not run":     {func(r *Result) { r.Mode = worker.SeenSet }, "did not run"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := good()
			tt.change(&r)
			assert.ErrorContains(t, Verdict([]Result{r}), tt.says)
		})
	}
}

func TestVerdictIsAboutTheTransactionalHandler(t *testing.T) {
	t.Parallel()
	assert.NoError(t, Verdict([]Result{{Mode: worker.Plain, Messages: 10, Charges: 15, Twice: 5}, good()}))
}

func TestAuditCount(t *testing.T) {
	t.Parallel()
	ordered := []payment.Command{{MessageID: "once"}, {MessageID: "thrice"}, {MessageID: "never"}}
	var a audit
	a.count(ordered, map[string]int{"once": 1, "thrice": 3})
	assert.Equal(t, audit{charges: 4, twice: 1, lost: 1}, a)
}

func TestWriteTable(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	r := good()
	r.Overcharged, r.Unbalanced = 1250, 1
	require.NoError(t, WriteTable(&b, []Result{r}))
	lines := strings.Split(b.String(), "\n")
	assert.Equal(t, "messages deliveries workers killed between COMMIT and ack charges charged twice lost overcharged ledger",
		strings.Join(strings.Fields(lines[0]), " "))
	assert.Equal(t, "transaction (Wrap) 10 14 3 2 10 0 0 12.50 1 unbalanced", strings.Join(strings.Fields(lines[1]), " "))
}
